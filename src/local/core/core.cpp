#include "local/core/core.hpp"

#include "base/entropy.hpp"
#include "engine/model/model.hpp"
#include "local/core/bodies.hpp"
#include "local/core/internals.hpp"
#include "local/core/routes.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <new>
#include <string>
#include <utility>

namespace tinkxx::local {

namespace {

using namespace std::chrono_literals;

// Where CPUs are scarce, the loop goes before those who read bodies and write results, and these
// before those who compute: the server answers however much there is to do.
constexpr int reading_niceness = 5;
constexpr int computing_niceness = 10;

Error bad_option(std::string field, std::string value, std::string const& why) {
    return Error{ErrorDetails{.kind = ErrorKind::validation,
                              .message = "local server: " + why,
                              .category = ErrorCategory::user,
                              .field = std::move(field),
                              .value = std::move(value)}};
}

/// The bytes of the tokens of a byte-level model.
std::string_view byte_of(std::int32_t token) {
    static auto const bytes = [] {
        std::array<char, 256> all{};
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>(i);
        return all;
    }();
    if (token < 0 || token > 255) return {};
    return {&bytes[static_cast<std::size_t>(token)], 1};
}

/// Random bits in the form of a random UUID.
std::string uuid_of(std::uint64_t high, std::uint64_t low) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (auto bits : {high, low}) {
        for (int i = 0; i < 16; ++i, bits >>= 4U) text += digits[bits & 15U];
    }
    text[12] = '4';
    text[16] = digits[8U + (static_cast<unsigned>(text[16]) & 3U)];
    for (auto const at : {8U, 13U, 18U, 23U}) text.insert(at, 1, '-');
    return text;
}

}  // namespace

Result<std::unique_ptr<Core>> Core::create(ServerOptions options, Scheduler& scheduler) {
    std::map<std::string, Base> bases;
    if (options.models.empty()) {
        return bad_option("models", {},
                          "there is no model to serve; name a folder with config.json and "
                          "*.safetensors");
    }
    for (auto& source : options.models) {
        auto config = engine::check_model(source.folder);
        if (!config) {
            return bad_option("models", source.folder.string(),
                              "the folder " + source.folder.string() +
                                  " is no model that can be served: " + config.error().what());
        }
        if (source.name.empty()) {
            source.name = source.folder.filename().empty()
                              ? source.folder.parent_path().filename().string()
                              : source.folder.filename().string();
        }
        auto const name = source.name;
        if (!bases.emplace(name, Base{.source = source, .config = *config}).second) {
            return bad_option("models", name, "two models are called " + name + "; rename one");
        }
    }
    auto chaos = parse_chaos(options.chaos);
    if (!chaos) return chaos.error();
    // Off the loop, where the scheduler has no chance to give. No result depends on it.
    auto home = Home::open(options.home, uuid_of(base::random_seed(), base::random_seed()));
    if (!home) return home.error();
    auto const unusable = [&](Error const& why) {
        std::string const text{why.what()};
        auto const way_out = text.find("; ") == std::string::npos
                                 ? "; put back a copy of it, or save what can be read with tinkxx "
                                   "home check --repair"
                                 : "";
        return bad_option("home", (*home)->folder().string(),
                          (*home)->database().string() + " cannot be used: " + text + way_out);
    };
    auto database = Database::open(
        (*home)->database(),
        {.durability = options.survive_power_loss ? Durability::power_loss : Durability::process,
         .home_id = (*home)->id(),
         .backups = (*home)->backups()});
    if (!database) return unusable(database.error());
    std::unique_ptr<Core> core{new Core{std::move(options), scheduler, *std::move(home),
                                        std::move(bases), *std::move(chaos)}};
    if (auto const read = core->read_store(**database); !read) {
        return bad_option("home", core->home().string(), read.error().what());
    }
    auto const worker = [&](Rest rest, int niceness = 0) {
        return core->options_.compute == Compute::loop ? loop_worker(scheduler, rest)
                                                       : thread_worker(scheduler, rest, niceness);
    };
    core->worker_ = worker(Rest::finish);
    core->file_worker_ = worker(Rest::finish);
    for (auto& reader : core->readers_) reader = worker(Rest::drop, reading_niceness);
    core->result_worker_ = worker(Rest::drop, reading_niceness);
    core->store_ = std::make_unique<Store>(*std::move(database), *core->worker_);
    return core;
}

Core::Core(ServerOptions options, Scheduler& scheduler, std::unique_ptr<Home> home,
           std::map<std::string, Base> bases, ChaosPlan chaos)
    : options_{std::move(options)},
      scheduler_{scheduler},
      access_{.api_key = options_.api_key, .hosts = options_.hosts},
      chaos_{std::move(chaos), options_.chaos_seed},
      home_{std::move(home)},
      bases_{std::move(bases)} {}

Core::~Core() {
    *alive_ = false;
    engine_.reset();
    later_.clear();
    turns_.clear();
    for (auto& reader : readers_) reader.reset();
    result_worker_.reset();
    file_worker_.reset();
    results_.reset();
    // What is under way is written; what waits for its turn is written here.
    worker_.reset();
    if (store_) store_->flush();
}

Result<void> Core::read_store(Database& database) {
    for (auto const& note : database.notes()) log(LogLevel::warning, "local server: " + note);
    auto stored = read_stored(database);
    if (!stored) {
        return Error{ErrorDetails{
            .kind = ErrorKind::validation,
            .message = home_->database().string() + " is damaged: " + stored.error().what() +
                       "; put back a copy of it, or save what can be read with tinkxx home check "
                       "--repair"}};
    }
    if (!stored->bad.empty()) {
        if (auto const aside = database.commit(quarantine(stored->bad)); !aside) return aside;
        std::vector<std::string> names;
        for (auto const& row : stored->bad) {
            names.push_back(std::string{to_string(row.table)} + " " + row.key + " (" + row.why +
                            ")");
        }
        log(LogLevel::warning, "local server: " + std::to_string(names.size()) +
                                   " rows of the database cannot be read, and were put into its "
                                   "table quarantine: " +
                                   some_of(names));
    }
    auto const inventory = take_inventory(*home_, *stored);
    if (!inventory) return inventory.error();
    if (auto const done = reconcile(*inventory); !done) return done;
    secret_ = stored->meta["secret"];
    if (secret_.empty()) {
        secret_ = uuid_of(base::random_seed(), base::random_seed()) +
                  uuid_of(base::random_seed(), base::random_seed());
        std::vector<Change> const changes{{Table::meta, "secret", secret_}};
        if (auto const written = database.commit(changes); !written) return written;
    }
    for (auto& [id, row] : stored->sessions) {
        if (row.status == SessionStatus::active) ++active_sessions_;
        sessions_[id].row = std::move(row);
    }
    runs_ = std::move(stored->runs);
    samplers_ = std::move(stored->samplers);
    checkpoints_ = std::move(stored->checkpoints);
    unfinished_ = std::move(stored->requests);
    usage_ = std::move(stored->usage);
    for (auto& [number, text] : stored->events) {
        next_event_ = std::max<std::int64_t>(next_event_, number + 1);
        events_.emplace_back(number, std::move(text));
    }
    constexpr std::string_view copy = "copy ";
    for (auto const& [key, text] : stored->meta) {
        if (key.starts_with(copy)) copies_[key.substr(copy.size())] = text;
    }
    return {};
}

Result<void> Core::reconcile(Inventory const& inventory) {
    next_ordinal_ = inventory.next_ordinal;
    for (auto const& [from, to] : inventory.to_finish) {
        if (auto const done = rename_entry(home_->place(from), home_->place(to)); !done) {
            return done;
        }
    }
    abandoned_ = inventory.abandoned;
    over_ = inventory.over;
    if (!inventory.unaccounted.empty()) {
        log(LogLevel::warning,
            "local server: " + home().string() + " holds " +
                std::to_string(inventory.unaccounted.size()) +
                " things that its database does not know, and keeps them: " +
                some_of(inventory.unaccounted) +
                "; tinkxx home check tells what they are, and --repair adopts them");
    }
    if (!inventory.missing.empty()) {
        log(LogLevel::warning, "local server: the files of " +
                                   std::to_string(inventory.missing.size()) +
                                   " checkpoints or samplers are missing from " + home().string() +
                                   ": " + some_of(inventory.missing));
    }
    return {};
}

/// What a sweep has seen of the rows so far.
struct Core::Look {
    explicit Look(Core const& core)
        : sessions{core.sessions_},
          runs{core.runs_},
          samplers{core.samplers_},
          checkpoints{core.checkpoints_} {}

    Walk<Sessions> sessions;
    Walk<std::map<std::string, RunRow>> runs;
    Walk<std::map<std::string, SamplerRow>> samplers;
    Walk<std::map<TinkerPath, CheckpointRow>> checkpoints;
    std::size_t bytes{0};
    std::vector<std::pair<WallTime, std::string>> ended{};
    std::vector<TinkerPath> expired{};
};

/// Looks every few seconds for what has become old.
class Core::Sweep final : public Timer {
public:
    explicit Sweep(Core& core) : core_{core} {}
    void on_time() override { core_.sweep(); }

private:
    Core& core_;
};

void Core::start() {
    results_ = std::make_unique<Results>(
        scheduler_, *store_,
        ResultsOptions{
            .poll_hold = options_.poll_hold,
            .completion_hold = std::min<std::chrono::milliseconds>(30s, options_.poll_hold),
            .inline_result_bytes = options_.inline_result_bytes,
            .fetched_keep = options_.fetched_keep,
            .unfetched_keep = options_.unfetched_keep,
            .fetched_bytes = options_.limits.fetched_bytes,
            .memory_bytes = options_.limits.result_bytes,
            .most = options_.limits.results});
    results_->why_waiting = [this](std::string const& id) { return why_waiting(id); };
    results_->plausible = [this](std::string const& id) {
        auto const owner = id.substr(0, id.rfind(':'));
        return runs_.contains(owner) || samplers_.contains(owner) || models_.contains(owner);
    };
    results_->forgotten = [this](std::string const& id) { sample_prints_.erase(id); };
    results_->elsewhere = [this](Task work, Task done) {
        result_worker_->run(std::move(work), std::move(done));
    };
    bool const by_loop = options_.compute == Compute::loop;
    engine_ = std::make_unique<engine::Engine>(
        scheduler_,
        engine::EngineOptions{.drive = by_loop ? engine::Drive::loop : engine::Drive::own_threads,
                              .threads = options_.threads,
                              .niceness = computing_niceness,
                              .cache_bytes = options_.cache_bytes,
                              .log = options_.log});
    for (auto& [name, base] : bases_) {
        engine::LoadModel job{.model = name, .folder = base.source.folder};
        if (base.source.byte_level) job.token_bytes = byte_of;
        engine_->submit(
            std::move(job), [this, name = name](Result<engine::ModelInfo> const& loaded) {
                auto& known = bases_.at(name);
                known.ready = loaded.has_value();
                if (loaded) {
                    log(LogLevel::info, "local server: " + name + " is ready");
                } else {
                    known.failure = loaded.error().what();
                    log(LogLevel::error,
                        "local server: " + name + " cannot be served: " + known.failure);
                }
            });
    }
    auto const now = scheduler_.now();
    for (auto& [id, session] : sessions_) session.seen = now;
    for (auto const& name : std::exchange(abandoned_, {})) remove_temporary(name);
    for (auto const& folder : std::exchange(over_, {})) remove_folder(folder);
    for (auto const& row : unfinished_) {
        auto const seq = row.id.substr(row.id.rfind(':') + 1);
        auto const number = std::strtoll(seq.c_str(), nullptr, 10);
        results_->restore(row, number / clone_stride);
    }
    std::erase_if(unfinished_, [](auto const& row) { return row.state != "pending"; });
    resume_samples();
    sweep_ = std::make_unique<Sweep>(*this);
    sweep();
}

void Core::sweep() {
    auto look = std::make_shared<Look>(*this);
    sweeping_.run([this, look] {
        if (!look_at_rows(*look)) return false;
        finish_sweep(*look);
        return true;
    });
}

bool Core::look_at_rows(Look& look) {
    constexpr std::size_t at_once = 1000;
    auto const now = scheduler_.now();
    auto const session = [&](std::string const& id, Session const& /*row*/) {
        auto& one = sessions_.at(id);
        look.bytes += kept_bytes_of(one.row);
        if (one.row.status == SessionStatus::active) {
            if (now - one.seen >= patience_with(id)) expire_session(one);
        } else if (may_forget(id)) {
            look.ended.emplace_back(one.row.created, id);
        }
    };
    auto const checkpoint = [&, wall = scheduler_.wall()](TinkerPath const& path,
                                                          CheckpointRow const& row) {
        if (row.expires && *row.expires <= wall) look.expired.push_back(path);
    };
    return look.sessions.go_on(at_once, session) &&
           look.runs.go_on(at_once,
                           [&](auto&, RunRow const& row) { look.bytes += kept_bytes_of(row); }) &&
           look.samplers.go_on(at_once, [&](auto&, auto&) { look.bytes += row_bytes; }) &&
           look.checkpoints.go_on(at_once, checkpoint);
}

void Core::finish_sweep(Look& look) {
    kept_bytes_ = look.bytes;
    forget_sessions(std::move(look.ended));
    forget_usage();
    auto const now = scheduler_.now();
    for (auto& [id, model] : models_) {
        if (!model.gap_since || now - *model.gap_since < options_.gap_timeout) continue;
        // Whoever should have sent them has given up: clients send in order.
        log(LogLevel::warning, "local server: requests " + std::to_string(model.next) + " to " +
                                   std::to_string(model.early.begin()->first - 1) + " of " + id +
                                   " never came; going on without them");
        model.next = model.early.begin()->first;
        run_steps(model);
    }
    for (auto const& path : look.expired) {
        Ask nobody{.operation = "expiry"};
        in_turn(nobody, [this, path](Ask&, std::shared_ptr<Turn> turn) {
            // Its time may have been changed meanwhile.
            auto const found = checkpoints_.find(path);
            if (found == checkpoints_.end() || find_checkpoint(path) != nullptr ||
                reserved_.contains(path)) {
                return;
            }
            forget_checkpoint({}, path, "checkpoint_expired", std::move(turn));
        });
    }
    for (auto const& id : std::exchange(dirty_runs_, {})) {
        store_->write({{Table::run, id, encode(runs_.at(id))}});
    }
    results_->sweep();
    scheduler_.arm(*sweep_, scheduler_.now() + 5s, Precision::coarse);
}

void Core::log(LogLevel level, std::string const& line) const {
    if (options_.log) options_.log(level, line);
}

std::string Core::fresh_id() {
    auto const high = scheduler_.entropy("local server");
    return uuid_of(high, scheduler_.entropy("local server"));
}

Core::Base const& Core::base(std::string_view operation, std::string const& name) const {
    auto const found = bases_.find(name);
    if (found == bases_.end()) {
        std::string known;
        for (auto const& [other, base] : bases_) known += (known.empty() ? "" : ", ") + other;
        throw Refused{404, std::string{operation} + ": there is no base model " +
                               name.substr(0, 200) + "; this server has " + known};
    }
    if (!found->second.failure.empty()) {
        throw Refused{400, std::string{operation} + ": the base model " + name +
                               " could not be loaded: " + found->second.failure};
    }
    return found->second;
}

QueueNote Core::why_waiting(std::string const& id) const {
    if (auto const found = pending_samples_.find(id);
        found != pending_samples_.end() && !found->second.job &&
        std::ranges::find(starved_, found->second.weights) != starved_.end()) {
        return {"paused_capacity",
                "the memory for adapters is in use; waiting for other samples to end"};
    }
    auto const colon = id.rfind(':');
    auto const model = models_.find(id.substr(0, colon));
    if (model != models_.end() && model->second.gap_since) {
        auto const seq = std::strtoll(id.c_str() + colon + 1, nullptr, 10);
        if (model->second.early.contains(seq)) {
            return {"active", "waiting for request " + std::to_string(model->second.next) +
                                  " of this model, which has not arrived yet"};
        }
    }
    return {};
}

// Requests --------------------------------------------------------------------------------------

namespace {

/// The last part of a path that is no name of somebody's: `checkpoints` of `/checkpoints/{ckpt}`.
std::string_view operation_of(std::string_view path) {
    for (;;) {
        auto const slash = path.rfind('/');
        auto const part = path.substr(slash + 1);
        if (!part.starts_with('{') || slash == std::string_view::npos) return part;
        path = path.substr(0, slash);
    }
}

}  // namespace

/// Counts an answer, and swallows one that is to be lost.
class Core::Watched final : public Answer {
public:
    Watched(std::shared_ptr<Answer> to, Counters& counters, std::shared_ptr<bool> alive,
            std::string route)
        : to_{std::move(to)},
          counters_{counters},
          alive_{std::move(alive)},
          route_{std::move(route)} {}

    void lose() { lost_ = true; }

    void head(int status, Headers headers, std::optional<std::size_t> length) override {
        if (*alive_) {
            counters_.add("tinkxx_requests_total",
                          "route=\"" + route_ + "\",status=\"" + std::to_string(status) + "\"");
        }
        if (!lost_) to_->head(status, std::move(headers), length);
    }
    void data(std::string bytes) override {
        if (!lost_) to_->data(std::move(bytes));
    }
    void done() override {
        if (!lost_) to_->done();
    }
    [[nodiscard]] std::size_t pending() const noexcept override {
        return lost_ ? 0 : to_->pending();
    }
    void on_gone(Task task) override { to_->on_gone(std::move(task)); }
    void on_drained(Task task) override { to_->on_drained(std::move(task)); }

private:
    std::shared_ptr<Answer> to_;
    Counters& counters_;
    std::shared_ptr<bool> alive_;
    std::string route_;
    bool lost_{false};
};

/// A request that chaos delays.
class Core::Later final : public Timer, public std::enable_shared_from_this<Later> {
public:
    Later(Core& core, Task task) : core_{core}, task_{std::move(task)} {}
    void on_time() override {
        auto const self = shared_from_this();
        core_.later_.erase(self);
        task_();
    }

private:
    Core& core_;
    Task task_;
};

void Core::handle(ServerRequest request, std::shared_ptr<Answer> answer) {
    auto const question = request.target.find('?');
    auto const path = std::string_view{request.target}.substr(0, question);
    auto const match = match_route(request.method, path);
    auto const name =
        match.route == nullptr ? std::string{"unknown"} : std::string{match.route->path};
    auto watched = std::make_shared<Watched>(std::move(answer), counters_, alive_, name);
    if (match.route == nullptr) {
        auto const what = request.method.substr(0, 20) + " " + std::string{path.substr(0, 200)};
        return send_refusal(*watched,
                            match.other_method
                                ? Refused{405, what + ": this path has other methods"}
                                : Refused{404, what + ": there is no such path; the API is below "
                                                      "/api/v1"});
    }
    if (auto const no = forbidden(access_, request, !match.route->open)) {
        return send_refusal(*watched, {no->status, no->detail});
    }
    Ask ask{.request = std::move(request),
            .operation = operation_of(match.route->path),
            .names = match.names,
            .answer = watched};
    if (question != std::string::npos) {
        ask.query = parse_query(std::string_view{ask.request.target}.substr(question + 1));
    }
    auto const endpoint = match.route->endpoint;
    bool const spared = match.route->path == "/metrics" || match.route->path == "/" ||
                        match.route->path == "/api/v1/healthz";
    if (spared || chaos_.quiet()) return serve(ask, endpoint);
    auto const fault = chaos_.next();
    auto act = [this, fault, endpoint, watched, ask = std::move(ask)]() mutable {
        if (fault.status) {
            counters_.add("tinkxx_chaos_total", "fault=\"" + std::to_string(*fault.status) + "\"");
            Refused refused{*fault.status, "chaos: this fault was asked for"};
            if (*fault.status == 429) refused.retry_after = 100ms;
            return send_refusal(*watched, refused);
        }
        if (fault.drop != Fault::Drop::no) counters_.add("tinkxx_chaos_total", "fault=\"drop\"");
        if (fault.drop == Fault::Drop::before) return;
        if (fault.drop == Fault::Drop::after) watched->lose();
        serve(ask, endpoint);
    };
    if (fault.delay <= 0ns) return act();
    auto later = std::make_shared<Later>(*this, std::move(act));
    later_.insert(later);
    scheduler_.arm(*later, scheduler_.now() + fault.delay, Precision::exact);
}

void Core::serve(Ask& ask, void (Core::*endpoint)(Ask&)) {
    guarded(ask, [&] {
        if (ask.request.body.size() > options_.limits.request_bytes) {
            throw Refused{413, std::string{ask.operation} + ": the body has " +
                                   std::to_string(ask.request.body.size()) +
                                   " bytes, and the limit is " +
                                   std::to_string(options_.limits.request_bytes) +
                                   "; send fewer data at once"};
        }
        (this->*endpoint)(ask);
    });
}

void Core::answer_failure(Ask& ask, std::exception_ptr const& failure) {
    if (!ask.answer) return;  // handed on already, or nobody asked
    try {
        std::rethrow_exception(failure);
    } catch (Refused const& refused) {
        send_refusal(*ask.answer, refused);
    } catch (Error const& error) {
        send_refusal(*ask.answer, {400, std::string{ask.operation} + ": " + error.what()});
    } catch (std::bad_alloc const&) {
        send_refusal(*ask.answer, {503,
                                   std::string{ask.operation} +
                                       ": the server has no memory for this now; send it again",
                                   1000ms});
    } catch (std::exception const& error) {
        log(LogLevel::error, std::string{"local server: "} + std::string{ask.operation} +
                                 " failed: " + error.what());
        send_refusal(*ask.answer, {500, std::string{ask.operation} + ": " + error.what()});
    }
}

std::size_t Core::most_bytes(Ask const& ask) const {
    auto const& limits = options_.limits;
    return is_protobuf(ask) ? limits.request_bytes
                            : std::min(limits.request_bytes, limits.json_bytes);
}

Worker& Core::reader(std::size_t bytes) {
    constexpr std::size_t small = std::size_t{256} << 10U;
    return *readers_[bytes <= small ? 0 : 1];
}

void Core::read_elsewhere(std::string const& operation, std::size_t bytes, Task work, Task done) {
    auto& worker = reader(bytes);
    auto& waiting = reading_bytes_[&worker == readers_[0].get() ? 0 : 1];
    if (waiting > 0 && waiting + bytes > options_.limits.reading_bytes) {
        throw Refused{503,
                      operation + ": bodies of " + std::to_string(waiting) +
                          " bytes wait to be read, and the limit is " +
                          std::to_string(options_.limits.reading_bytes) + "; send it again",
                      500ms};
    }
    waiting += bytes;
    worker.run(std::move(work), [&waiting, bytes, done = std::move(done)]() mutable {
        waiting -= bytes;
        done();
    });
}

/// The right to change rows: the next change begins when the last copy is gone.
class Core::Turn {
public:
    explicit Turn(Core& core) : core_{core}, alive_{core.alive_} {}
    Turn(Turn const&) = delete;
    Turn& operator=(Turn const&) = delete;
    ~Turn() {
        if (!*alive_) return;
        core_.scheduler_.post([&core = core_, alive = alive_] {
            if (!*alive) return;
            core.taking_turn_ = false;
            core.next_turn();
        });
    }

private:
    Core& core_;
    std::shared_ptr<bool> alive_;
};

void Core::in_turn(Ask& ask,
                   tinkxx::detail::UniqueFunction<void(Ask&, std::shared_ptr<Turn>)> change) {
    turns_.emplace_back(std::move(ask), std::move(change));
    next_turn();
}

void Core::next_turn() {
    if (taking_turn_ || turns_.empty()) return;
    taking_turn_ = true;
    auto [ask, change] = std::move(turns_.front());
    turns_.pop_front();
    guarded(ask, [&, &ask = ask, &change = change] { change(ask, std::make_shared<Turn>(*this)); });
}

void Core::commit(std::shared_ptr<Answer> const& answer, std::string_view operation,
                  std::vector<Change> changes, tinkxx::detail::UniqueFunction<void()> written) {
    store_->write(std::move(changes),
                  [answer, what = std::string{operation},
                   written = std::move(written)](Result<void> const& outcome) mutable {
                      if (outcome) return written();
                      if (answer) send_refusal(*answer, not_written(what, outcome.error()));
                  });
}

std::string Core::base_url(Ask const& ask) {
    auto const host = ask.header("Host");
    return "http://" + std::string{host.empty() ? std::string_view{"localhost"} : host};
}

// The end ---------------------------------------------------------------------------------------

/// Waits for what is under way.
class Core::Stopping final : public Timer {
public:
    Stopping(Core& core, TimePoint deadline, Task done)
        : core_{core}, deadline_{deadline}, done_{std::move(done)} {}

    void on_time() override {
        auto& scheduler = core_.scheduler_;
        // Those of models that are unloaded already count too.
        auto steps = core_.step_bytes_.size();
        for (auto const& [id, model] : core_.models_) steps += model.pending;
        if (steps > 0 && scheduler.now() < deadline_) {
            return scheduler.arm(*this, scheduler.now() + 20ms, Precision::exact);
        }
        // All that was asked for before is committed when this is.
        core_.store_->write(
            {}, [done = std::move(done_)](Result<void> const& /*all*/) mutable { done(); });
    }

private:
    Core& core_;
    TimePoint deadline_;
    Task done_;
};

void Core::stop(std::chrono::nanoseconds limit, Task done) {
    stopping_ = true;
    stopping_timer_ = std::make_unique<Stopping>(*this, scheduler_.now() + limit, std::move(done));
    scheduler_.arm(*stopping_timer_, scheduler_.now(), Precision::exact);
}

}  // namespace tinkxx::local
