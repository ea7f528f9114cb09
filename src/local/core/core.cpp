#include "local/core/core.hpp"

#include "base/common/entropy.hpp"
#include "base/loop/loop_rule.hpp"
#include "local/core/routes.hpp"
#include "local/store/files.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace tinkxx::local {

namespace {

using namespace std::chrono_literals;

// Those who compute give way to the loop and to those who read bodies and write results.
constexpr int computing_niceness = 10;

Error bad_home(std::filesystem::path const& home, std::string const& why) {
    return Error{ErrorDetails{.kind = ErrorKind::validation,
                              .message = "local server: " + why,
                              .category = ErrorCategory::user,
                              .field = "home",
                              .value = home.string()}};
}

Error unusable(Home const& home, Error const& why) {
    std::string const text{why.what()};
    auto const way_out = text.find("; ") == std::string::npos
                             ? "; put back a copy of it, or save what can be read with tinkxx "
                               "home check --repair"
                             : "";
    return bad_home(home.folder(), home.database().string() + " cannot be used: " + text + way_out);
}

using Log = std::function<void(LogLevel, std::string const&)>;

/// Reads all rows, and puts aside those that cannot be read.
Result<Stored> read_rows(Home const& home, Database& database, Log const& log) {
    auto stored = read_stored(database);
    if (!stored) {
        return Error{ErrorDetails{
            .kind = ErrorKind::validation,
            .message = home.database().string() + " is damaged: " + stored.error().what() +
                       "; put back a copy of it, or save what can be read with tinkxx home check "
                       "--repair"}};
    }
    if (stored->bad.empty()) return stored;
    if (auto const aside = database.commit(quarantine(stored->bad)); !aside) return aside.error();
    std::vector<std::string> names;
    for (auto const& row : stored->bad) {
        names.push_back(std::string{to_string(row.table)} + " " + row.key + " (" + row.why + ")");
    }
    log(LogLevel::warning, "local server: " + std::to_string(names.size()) +
                               " rows of the database cannot be read, and were put into its "
                               "table quarantine: " +
                               some_of(names));
    return stored;
}

/// Finishes what was cut short, and tells of what does not belong to any row.
Result<void> reconcile(Home const& home, Inventory const& inventory, Log const& log) {
    for (auto const& [from, to] : inventory.to_finish) {
        if (auto const done = rename_entry(home.place(from), home.place(to)); !done) {
            return done;
        }
    }
    if (!inventory.unaccounted.empty()) {
        log(LogLevel::warning,
            "local server: " + home.folder().string() + " holds " +
                std::to_string(inventory.unaccounted.size()) +
                " things that its database does not know, and keeps them: " +
                some_of(inventory.unaccounted) +
                "; tinkxx home check tells what they are, and --repair adopts them");
    }
    if (!inventory.missing.empty()) {
        log(LogLevel::warning, "local server: the files of " +
                                   std::to_string(inventory.missing.size()) +
                                   " checkpoints or samplers are missing from " +
                                   home.folder().string() + ": " + some_of(inventory.missing));
    }
    return {};
}

/// Sees to it that there is a secret by which links are signed.
Result<void> make_secret(Stored& stored, Database& database) {
    auto& secret = stored.meta["secret"];
    if (!secret.empty()) return {};
    secret = uuid_of(base::random_seed(), base::random_seed()) +
             uuid_of(base::random_seed(), base::random_seed());
    std::vector<Change> const changes{{Table::meta, "secret", secret}};
    return database.commit(changes);
}

}  // namespace

// The start -------------------------------------------------------------------------------------

/// What a server finds in its home.
struct Core::Opened {
    BaseModels::Map models{};
    ChaosPlan chaos{};
    std::unique_ptr<Home> home{};
    std::unique_ptr<Database> database{};
    Stored stored{};
    Inventory inventory{};

    [[nodiscard]] Result<void> read(Log const& log) {
        for (auto const& note : database->notes()) log(LogLevel::warning, "local server: " + note);
        auto rows = read_rows(*home, *database, log);
        if (!rows) return rows.error();
        stored = *std::move(rows);
        auto found = take_inventory(*home, stored);
        if (!found) return found.error();
        inventory = *std::move(found);
        if (auto const done = reconcile(*home, inventory, log); !done) return done;
        return make_secret(stored, *database);
    }
};

Result<std::unique_ptr<Core>> Core::create(ServerOptions options, Scheduler& scheduler) {
    Opened opened;
    auto models = BaseModels::read(options.models);
    if (!models) return models.error();
    opened.models = *std::move(models);
    auto chaos = parse_chaos(options.chaos);
    if (!chaos) return chaos.error();
    opened.chaos = *std::move(chaos);
    // Off the loop, where the scheduler has no chance to give. No result depends on it.
    auto home = Home::open(options.home, uuid_of(base::random_seed(), base::random_seed()));
    if (!home) return home.error();
    opened.home = *std::move(home);
    auto database = Database::open(
        opened.home->database(),
        {.durability = options.survive_power_loss ? Durability::power_loss : Durability::process,
         .home_id = opened.home->id(),
         .backups = opened.home->backups()});
    if (!database) return unusable(*opened.home, database.error());
    opened.database = *std::move(database);
    auto const log = [&options](LogLevel level, std::string const& line) {
        if (options.log) options.log(level, line);
    };
    if (auto const read = opened.read(log); !read) {
        return bad_home(opened.home->folder(), read.error().what());
    }
    return std::unique_ptr<Core>{new Core{std::move(options), scheduler, std::move(opened)}};
}

Core::Core(ServerOptions options, Scheduler& scheduler, Opened opened)
    : services_{std::move(options), scheduler, std::move(opened.home), std::move(opened.database)},
      parts_{services_, std::move(opened.models), opened.stored, opened.inventory.next_ordinal},
      access_{.api_key = services_.options.api_key, .hosts = services_.options.hosts},
      chaos_{std::move(opened.chaos), services_.options.chaos_seed},
      sweeping_{scheduler},
      requests_{std::move(opened.stored.requests)},
      abandoned_{std::move(opened.inventory.abandoned)},
      over_{std::move(opened.inventory.over)} {}

Core::~Core() {
    later_.clear();
    services_.close();
}

void Core::start_results() {
    auto const& options = services_.options;
    services_.results = std::make_unique<Results>(
        services_.scheduler, *services_.store,
        ResultsOptions{
            .poll_hold = options.poll_hold,
            .completion_hold = std::min<std::chrono::milliseconds>(30s, options.poll_hold),
            .inline_result_bytes = options.inline_result_bytes,
            .fetched_keep = options.fetched_keep,
            .unfetched_keep = options.unfetched_keep,
            .fetched_bytes = options.limits.fetched_bytes,
            .memory_bytes = options.limits.result_bytes,
            .most = options.limits.results});
    auto& results = *services_.results;
    results.why_waiting = [this](std::string const& id) { return why_waiting(id); };
    results.plausible = [this](std::string const& id) {
        auto const owner = id.substr(0, id.rfind(':'));
        return parts_.runs.find(owner) != nullptr || parts_.samplers.find(owner) != nullptr ||
               parts_.models.contains(owner);
    };
    results.forgotten = [this](std::string const& id) { parts_.sampling.forget(id); };
    results.elsewhere = [this](Task work, Task done) {
        services_.result_worker->run(std::move(work), std::move(done));
    };
}

/// Looks every few seconds for what has become old.
class Core::Sweep final : public Timer {
public:
    explicit Sweep(Core& core) : core_{core} {}
    void on_time() override { core_.sweep(); }

private:
    Core& core_;
};

void Core::start() {
    TINKXX_ASSERT_LOOP(services_.scheduler);
    auto const& options = services_.options;
    start_results();
    bool const by_loop = options.compute == Compute::loop;
    services_.engine = std::make_unique<engine::Engine>(
        services_.scheduler,
        engine::EngineOptions{.drive = by_loop ? engine::Drive::loop : engine::Drive::own_threads,
                              .threads = options.threads,
                              .niceness = computing_niceness,
                              .cache_bytes = options.cache_bytes,
                              .log = options.log});
    parts_.bases.load();
    parts_.sessions.start();
    for (auto const& name : std::exchange(abandoned_, {})) parts_.folders.remove_temporary(name);
    for (auto const& folder : std::exchange(over_, {})) parts_.folders.remove(folder);
    for (auto const& row : requests_) services_.results->restore(row);
    std::erase_if(requests_, [](auto const& row) { return row.state != "pending"; });
    parts_.sampling.resume(std::exchange(requests_, {}));
    sweep_ = std::make_unique<Sweep>(*this);
    sweep();
}

// The sweep -------------------------------------------------------------------------------------

/// What a sweep has seen of the rows so far.
struct Core::Look {
    explicit Look(Parts const& parts)
        : sessions{parts.sessions.begin_look()},
          runs{parts.runs.begin_look()},
          samplers{parts.samplers.begin_look()},
          checkpoints{parts.checkpoints.begin_look()} {}

    Sessions::Look sessions;
    Runs::Look runs;
    Samplers::Look samplers;
    Checkpoints::Look checkpoints;
};

void Core::sweep() {
    // First, so that one sweep that fails is not the last.
    auto& scheduler = services_.scheduler;
    scheduler.arm(*sweep_, scheduler.now() + 5s, Precision::coarse);
    auto look = std::make_shared<Look>(parts_);
    sweeping_.run([this, look] {
        bool const all = parts_.sessions.go_on(look->sessions) && parts_.runs.go_on(look->runs) &&
                         parts_.samplers.go_on(look->samplers) &&
                         parts_.checkpoints.go_on(look->checkpoints);
        if (all) finish_sweep(*look);
        return all;
    });
}

void Core::finish_sweep(Look& look) {
    auto const bytes = look.sessions.bytes + look.runs.bytes + look.samplers.bytes;
    parts_.sessions.finish_look(std::move(look.sessions), bytes);
    parts_.usage.forget_old();
    parts_.models.skip_gaps();
    parts_.checkpoints.finish_look(look.checkpoints);
    parts_.runs.write_touched();
    services_.results->sweep();
    parts_.weights.sweep();
}

QueueNote Core::why_waiting(std::string const& id) const {
    if (auto note = parts_.sampling.why_waiting(id)) return *std::move(note);
    return parts_.models.why_waiting(id).value_or(QueueNote{});
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

/// Whether chaos leaves it alone.
bool spared(Route const& route) {
    return route.path == "/metrics" || route.path == "/" || route.path == "/api/v1/healthz";
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
    TINKXX_ASSERT_LOOP(services_.scheduler);
    auto const question = request.target.find('?');
    auto const path = std::string_view{request.target}.substr(0, question);
    auto const match = match_route(request.method, path);
    auto const name =
        match.route == nullptr ? std::string{"unknown"} : std::string{match.route->path};
    auto watched =
        std::make_shared<Watched>(std::move(answer), services_.counters, services_.alive, name);
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
    if (spared(*match.route) || chaos_.quiet()) return serve(ask, *match.route);
    serve_with_faults(std::move(ask), *match.route, std::move(watched));
}

void Core::serve_with_faults(Ask ask, Route const& route, std::shared_ptr<Watched> watched) {
    auto const fault = chaos_.next();
    auto act = [this, fault, &route, watched = std::move(watched), ask = std::move(ask)]() mutable {
        auto& counters = services_.counters;
        if (fault.status) {
            counters.add("tinkxx_chaos_total", "fault=\"" + std::to_string(*fault.status) + "\"");
            Refused refused{*fault.status, "chaos: this fault was asked for"};
            if (*fault.status == 429) refused.retry_after = 100ms;
            return send_refusal(*watched, refused);
        }
        if (fault.drop != Fault::Drop::no) counters.add("tinkxx_chaos_total", "fault=\"drop\"");
        if (fault.drop == Fault::Drop::before) return;
        if (fault.drop == Fault::Drop::after) watched->lose();
        serve(ask, route);
    };
    if (fault.delay <= 0ns) return act();
    auto later = std::make_shared<Later>(*this, std::move(act));
    later_.insert(later);
    auto& scheduler = services_.scheduler;
    scheduler.arm(*later, scheduler.now() + fault.delay, Precision::exact);
}

void Core::serve(Ask& ask, Route const& route) {
    run_endpoint(ask, services_.options.log, [&]() -> MaybeRefused {
        auto const bytes = ask.request.body.size();
        auto const most = services_.options.limits.request_bytes;
        if (bytes > most) {
            return Refused{413, std::string{ask.operation} + ": the body has " +
                                    std::to_string(bytes) + " bytes, and the limit is " +
                                    std::to_string(most) + "; send fewer data at once"};
        }
        return route.endpoint(parts_, ask);
    });
}

// The end ---------------------------------------------------------------------------------------

/// Waits for what is under way.
class Core::Stopping final : public Timer {
public:
    Stopping(Core& core, TimePoint deadline, Task done)
        : core_{core}, deadline_{deadline}, done_{std::move(done)} {}

    void on_time() override {
        auto& scheduler = core_.services_.scheduler;
        if (core_.parts_.models.pending() > 0 && scheduler.now() < deadline_) {
            return scheduler.arm(*this, scheduler.now() + 20ms, Precision::exact);
        }
        // All that was asked for before is committed when this is.
        core_.services_.store->write(
            {}, [this, done = std::move(done_)](Result<void> const& /*all*/) mutable {
                // Who was told that it has stopped may take away what lines are written to.
                core_.services_.options.log = nullptr;
                done();
            });
    }

private:
    Core& core_;
    TimePoint deadline_;
    Task done_;
};

void Core::stop(std::chrono::nanoseconds limit, Task done) {
    TINKXX_ASSERT_LOOP(services_.scheduler);
    auto& scheduler = services_.scheduler;
    services_.stopping = true;
    stopping_timer_ = std::make_unique<Stopping>(*this, scheduler.now() + limit, std::move(done));
    scheduler.arm(*stopping_timer_, scheduler.now(), Precision::exact);
}

}  // namespace tinkxx::local
