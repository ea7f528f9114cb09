#include "simulation/local/local_host.hpp"

#include "base/loop/timer_queue.hpp"
#include "engine/model/model.hpp"
#include "local/core/core.hpp"
#include "local/in_process.hpp"
#include "simulation/training/training_model.hpp"
#include "support/tiny_models.hpp"
#include "wire/server/requests.hpp"

#include <cstdlib>
#include <fstream>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

namespace tinkxx::simulation {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

/// Delays shorter than this are those of computing, and take longer on a slow machine.
constexpr auto computing = 50ms;

/// Written once for all worlds of a program.
fs::path const& model_folder() {
    static ScratchFolder const folder;
    static auto const path = [] {
        engine::ModelConfig const config{.architecture = engine::Architecture::llama,
                                         .vocab_size = local_vocabulary,
                                         .hidden_size = 8,
                                         .intermediate_size = 12,
                                         .layers = 1,
                                         .heads = 2,
                                         .kv_heads = 1,
                                         .head_dim = 4,
                                         .max_positions = 64,
                                         .eos_tokens = {0}};
        auto place = folder.path() / "tiny";
        auto const weights =
            engine::support::weights_of(config, engine::support::random_tensors(config, 7));
        engine::save_model(place, config, weights, engine::ElementType::f32).value();
        return place;
    }();
    return path;
}

std::string read_file(fs::path const& file) {
    std::error_code none;
    auto const size = fs::file_size(file, none);
    if (none) return {};
    std::string bytes(static_cast<std::size_t>(size), '\0');
    std::ifstream{file, std::ios::binary}.read(bytes.data(), static_cast<std::streamsize>(size));
    return bytes;
}

void write_file(fs::path const& file, std::string const& bytes) {
    std::ofstream out{file, std::ios::binary | std::ios::trunc};
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string line(Headers const& headers, std::string_view name) {
    auto const* const found = headers.find(name);
    return found == nullptr ? std::string{} : *found;
}

}  // namespace

ScratchFolder::ScratchFolder() {
    // In memory where that is to be had: checkpoints are flushed, which takes longer than the rest.
    for (auto const& place : {fs::path{"/dev/shm"}, fs::temp_directory_path()}) {
        auto pattern = (place / "tinkxx-sim-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) continue;
        path_ = pattern;
        return;
    }
    throw std::runtime_error{"no temporary folder"};
}

ScratchFolder::~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

local::ServerOptions local_server_options(fs::path home) {
    local::ServerOptions options;
    options.models = {{.name = local_model, .folder = model_folder()}};
    options.home = std::move(home);
    options.cache_bytes = std::size_t{1} << 20U;
    options.compute = local::Compute::loop;
    options.survive_power_loss = false;
    return options;
}

/// The server's scheduler: the clock, with a word in front of everything that it runs for the
/// server. What belongs to an earlier life is dropped.
class LocalHost::Clockwork final : public Scheduler {
public:
    Clockwork(LocalHost& host, int slowness) : host_{host}, slowness_{slowness} {}
    ~Clockwork() override {
        for (auto& [timer, alarm] : alarms_) TimerAccess::owner(*timer) = nullptr;
    }
    Clockwork(Clockwork const&) = delete;
    Clockwork& operator=(Clockwork const&) = delete;

    [[nodiscard]] TimePoint now() const noexcept override { return host_.clock_.now(); }
    [[nodiscard]] WallTime wall() const noexcept override { return host_.clock_.wall(); }
    [[nodiscard]] std::uint64_t entropy(std::string_view stream) override {
        return host_.clock_.entropy(stream);
    }
    void arm(Timer& timer, TimePoint when, Precision precision) noexcept override {
        auto const delay = when - now();
        if (delay > 0ns && delay < computing) when = now() + delay * slowness_;
        auto& alarm = alarms_[&timer];
        if (!alarm) alarm = std::make_unique<Intercepted>(*this, timer);
        TimerAccess::owner(timer) = this;
        host_.clock_.arm(*alarm, when, precision);
    }
    void disarm(Timer& timer) noexcept override {
        alarms_.erase(&timer);
        TimerAccess::owner(timer) = nullptr;
    }
    void post(Task task) override {
        host_.clock_.post([this, life = life_, task = std::move(task)]() mutable {
            if (life == life_ && host_.event()) task();
        });
    }
    [[nodiscard]] bool on_loop() const noexcept override { return host_.clock_.on_loop(); }
    bool turn(std::chrono::nanoseconds limit) override { return host_.clock_.turn(limit); }

    void next_life() { ++life_; }
    [[nodiscard]] int slowness() const noexcept { return slowness_; }

private:
    struct Intercepted final : Timer {
        Intercepted(Clockwork& its_owner, Timer& its_timer) : owner{its_owner}, timer{its_timer} {}
        void on_time() override { owner.fire(*this); }
        Clockwork& owner;
        Timer& timer;
    };

    void fire(Intercepted& alarm) {
        auto& timer = alarm.timer;
        auto const keep = std::move(alarms_.at(&timer));
        alarms_.erase(&timer);
        TimerAccess::owner(timer) = nullptr;
        if (host_.event()) timer.on_time();
    }

    LocalHost& host_;
    int slowness_;
    int life_{0};
    std::map<Timer*, std::unique_ptr<Intercepted>> alarms_{};
};

/// Where requests come in and answers go out.
class LocalHost::Door final : public local::Handler {
public:
    Door(LocalHost& host, std::shared_ptr<local::Core> core)
        : host_{host}, core_{std::move(core)} {}

    void handle(local::ServerRequest request, std::shared_ptr<local::Answer> answer) override {
        auto leaving = std::make_shared<Leaving>(host_.watch_, std::move(answer));
        auto& served = leaving->served;
        auto const& headers = request.headers;
        served.life = host_.life_;
        served.path = request.target.substr(0, request.target.find('?'));
        served.content_type = line(headers, "Content-Type");
        served.accept = line(headers, "Accept");
        served.idempotency_key = line(headers, "X-Idempotency-Key");
        served.mark = line(headers, mark_line);
        auto plain =
            wire::server::decode_body("simulation", local::RequestBody{request.body}.join(),
                                      line(headers, "Content-Encoding"), 1U << 30U);
        if (plain) served.body = *std::move(plain);
        host_.watch_.on_asked(served);
        core_->handle(std::move(request), std::move(leaving));
    }

private:
    struct Leaving final : local::Answer {
        Leaving(ServerWatch& its_watch, std::shared_ptr<local::Answer> its_to)
            : watch{its_watch}, to{std::move(its_to)} {}
        void head(int status, Headers headers, std::optional<std::size_t> length) override {
            served.status = status;
            served.answer_type = line(headers, "Content-Type");
            to->head(status, std::move(headers), length);
        }
        void data(std::string bytes) override {
            served.answer += bytes;
            to->data(std::move(bytes));
        }
        void done() override {
            watch.on_served(served);
            to->done();
        }
        [[nodiscard]] std::size_t pending() const noexcept override { return to->pending(); }
        void on_gone(Task task) override { to->on_gone(std::move(task)); }
        void on_drained(Task task) override { to->on_drained(std::move(task)); }

        ServerWatch& watch;
        std::shared_ptr<local::Answer> to;
        Served served{};
    };

    LocalHost& host_;
    std::shared_ptr<local::Core> core_;
};

/// A request of a client.
struct LocalHost::Passing final : ReplySink, std::enable_shared_from_this<Passing> {
    Passing(LocalHost& its_host, std::uint64_t its_id, ReplySink& its_sink)
        : host{its_host}, id{its_id}, sink{its_sink} {}

    void on_head(Head head) override {
        auto const keep = shared_from_this();
        sink.on_head(std::move(head));
    }
    void on_data(std::span<char const> data) override {
        auto const keep = shared_from_this();
        sink.on_data(data);
    }
    void on_done(Timing const& timing) override {
        auto const keep = end();
        sink.on_done(timing);
    }
    void on_failure(Failure failure) override {
        auto const keep = end();
        sink.on_failure(std::move(failure));
    }
    std::shared_ptr<Passing> end() {
        auto self = shared_from_this();
        host.open_.erase(id);
        return self;
    }

    LocalHost& host;
    std::uint64_t id;
    ReplySink& sink;
    /// None: there is nobody behind it.
    std::optional<Call> inner{};
};

LocalHost::LocalHost(std::uint64_t seed, testing::ManualClock& clock, local::ServerOptions options,
                     ServerWatch& watch, Tally& tally, Note note)
    : random_{seed},
      clock_{clock},
      options_{std::move(options)},
      watch_{watch},
      tally_{tally},
      note_{std::move(note)} {
    auto const drawn = random_.unit();
    clockwork_ = std::make_unique<Clockwork>(*this, drawn < 0.4 ? 1 : drawn < 0.7 ? 10 : 100);
}

LocalHost::~LocalHost() { power_off(); }

local::Handler& LocalHost::handler() { return *core_; }

int LocalHost::slowness() const noexcept { return clockwork_->slowness(); }

void LocalHost::start_server() {
    ++life_;
    auto made = local::Core::create(options_, *clockwork_);
    core_ = std::shared_ptr<local::Core>{std::move(made).value()};
    inner_ = std::make_unique<local::InProcessTransport>(*clockwork_,
                                                         std::make_shared<Door>(*this, core_));
    note_("server starts, life " + std::to_string(life_));
    core_->start();
}

bool LocalHost::event() {
    if (!events_left_ || --*events_left_ > 0) return true;
    events_left_.reset();
    ++tally_["server: crash between two steps"];
    crash();
    return false;
}

void LocalHost::crash() {
    if (!core_) return;
    note_("server crashes, life " + std::to_string(life_));
    ++tally_["server: crash"];
    // The destructor of a core still writes what waits; a process that is killed does not.
    auto const database = options_.home / "tinkxx.sqlite";
    auto const log = options_.home / "tinkxx.sqlite-wal";
    auto const rows = read_file(database);
    auto const newer = read_file(log);
    end_life();
    write_file(database, rows);
    write_file(log, newer);
    fs::remove(options_.home / "tinkxx.sqlite-shm");
    tear_unknown_folders();
    fail_open();
    if (on_down) on_down();
}

void LocalHost::stop(std::chrono::nanoseconds limit) {
    if (!core_) return;
    note_("server is told to stop, life " + std::to_string(life_));
    core_->stop(limit, [this, life = life_, until = clock_.now() + limit] {
        clock_.post([this, life, until] {
            if (!core_ || life != life_) return;
            note_("server stops, life " + std::to_string(life_));
            ++tally_["server: clean stop"];
            events_left_.reset();
            if (clock_.now() < until) watch_.on_clean_stop(life_);
            end_life();
            fail_open();
            if (on_down) on_down();
        });
    });
}

void LocalHost::power_off() {
    on_down = {};
    if (core_) end_life();
    while (clock_.run_ready()) {
    }
}

void LocalHost::end_life() {
    clockwork_->next_life();
    inner_.reset();
    core_.reset();
}

void LocalHost::fail_open() {
    for (auto const& [id, passing] : open_) {
        if (!passing->inner) continue;
        passing->inner.reset();
        clock_.post([this, number = id] {
            auto const found = open_.find(number);
            if (found == open_.end()) return;
            found->second->on_failure(
                {.kind = FailureKind::reset, .message = "the server died", .seen = Seen::maybe});
        });
    }
}

void LocalHost::tear_unknown_folders() {
    std::set<std::string> known;
    {
        auto database =
            local::Database::open(options_.home / "tinkxx.sqlite",
                                  {.durability = local::Durability::process,
                                   .home_id = local::look_at_home(options_.home).value().id})
                .value();
        auto const checkpoints = database->all(local::Table::checkpoint).value();
        for (auto const& [key, text] : checkpoints) {
            known.insert(local::decode_checkpoint_row(text).value().folder);
        }
        auto const samplers = database->all(local::Table::sampler).value();
        for (auto const& [key, text] : samplers) {
            known.insert(local::decode_sampler_row(text).value().folder);
        }
    }
    for (std::string const place : {"checkpoints", "ephemeral"}) {
        for (auto const& folder : fs::directory_iterator{options_.home / place}) {
            auto name = folder.path().filename().string();
            // One whose row is safe was flushed, whatever it is called.
            constexpr std::string_view saving = "-saving-";
            if (auto const at = name.find(saving);
                name.starts_with(".tinkxx-") && at < name.size()) {
                name = name.substr(at + saving.size());
            }
            if (known.contains(place + "/" + name)) continue;
            ++tally_["server: crash before a save was known"];
            std::set<fs::path> files;
            for (auto const& file : fs::directory_iterator{folder}) files.insert(file.path());
            for (auto const& file : files) {
                if (chance(0.4)) continue;
                // A copy shares its files with what it is a copy of.
                if (chance(0.3) || fs::hard_link_count(file) > 1) {
                    fs::remove(file);
                } else {
                    fs::resize_file(file, fs::file_size(file) / 2);
                }
            }
        }
    }
}

Call LocalHost::start(Request request, ReplySink& sink) {
    auto const id = ++last_;
    auto passing = std::make_shared<Passing>(*this, id, sink);
    open_[id] = passing;
    if (core_) {
        passing->inner = inner_->start(std::move(request), *passing);
        return {id};
    }
    ++tally_["server: nobody there"];
    clock_.post([this, id] {
        auto const found = open_.find(id);
        if (found == open_.end()) return;
        found->second->on_failure(
            {.kind = FailureKind::connect, .message = "nobody listens there", .seen = Seen::no});
    });
    return {id};
}

void LocalHost::cancel(Call call) noexcept {
    auto const found = open_.find(call.id);
    if (found == open_.end()) return;
    auto const passing = found->second;
    open_.erase(found);
    if (passing->inner && inner_) inner_->cancel(*passing->inner);
}

void LocalHost::pause(Call call, bool on) noexcept {
    auto const found = open_.find(call.id);
    if (found == open_.end() || !found->second->inner || !inner_) return;
    inner_->pause(*found->second->inner, on);
}

void LocalHost::drain(TimePoint /*deadline*/) noexcept {}

namespace {

struct Collected final : local::Answer {
    explicit Collected(std::shared_ptr<ServerReply> where) : into{std::move(where)} {}
    void head(int status, Headers headers, std::optional<std::size_t> /*length*/) override {
        into->status = status;
        into->type = line(headers, "Content-Type");
    }
    void data(std::string bytes) override { into->body += bytes; }
    void done() override { *over = true; }
    [[nodiscard]] std::size_t pending() const noexcept override { return 0; }
    void on_gone(Task /*task*/) override {}
    void on_drained(Task /*task*/) override {}

    std::shared_ptr<ServerReply> into;
    std::shared_ptr<bool> over{std::make_shared<bool>(false)};
};

}  // namespace

ServerReply ask_server(local::Handler& server, testing::ManualClock& clock,
                       local::ServerRequest request) {
    auto const got = std::make_shared<ServerReply>();
    auto answer = std::make_shared<Collected>(got);
    auto const over = answer->over;
    request.headers.add("Host", "localhost");
    auto const until = clock.now() + 10min;
    clock.post([&server, &request, answer = std::move(answer)]() mutable {
        server.handle(std::move(request), std::move(answer));
    });
    while (!*over && clock.now() < until) clock.turn(1min);
    if (!*over) got->status = 0;
    return *got;
}

}  // namespace tinkxx::simulation
