#pragma once

#include <tinkxx/local/options.hpp>
#include <tinkxx/scheduler.hpp>

#include "engine/engine.hpp"
#include "local/access.hpp"
#include "local/chaos.hpp"
#include "local/core/ask.hpp"
#include "local/core/counters.hpp"
#include "local/core/fingerprint.hpp"
#include "local/core/futures.hpp"
#include "local/core/rows.hpp"
#include "local/handler.hpp"
#include "local/store/home.hpp"
#include "local/store/store.hpp"
#include "wire/server_requests.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace tinkxx::wire {
class JsonOut;
}

namespace tinkxx::local {

/// A Tinker server without a socket: every endpoint of the API is a member, found by the table in
/// `routes.hpp`. All state is here and in the store; all of it belongs to the loop.
///
/// `create` may be called on any thread; everything else, the destructor included, on the loop.
class Core final : public Handler {
public:
    /// Opens the home, reads what is kept there and the configurations of the models. Fails with a
    /// message for the operator. The scheduler must outlive the core.
    [[nodiscard]] static Result<std::unique_ptr<Core>> create(ServerOptions options,
                                                              Scheduler& scheduler);
    ~Core() override;
    Core(Core const&) = delete;
    Core& operator=(Core const&) = delete;

    /// Begins to load models and to compute what was promised before.
    void start();
    void handle(ServerRequest request, std::shared_ptr<Answer> answer) override;
    /// Takes no new work (503), and calls `done` once what runs is done and written down, or
    /// `limit` is over. Samples that are not done by then are computed by the next server.
    void stop(std::chrono::nanoseconds limit, Task done);

    [[nodiscard]] ServerOptions const& options() const noexcept { return options_; }
    [[nodiscard]] std::filesystem::path const& home() const noexcept { return home_->folder(); }

    // Endpoints, by file. Each answers `ask`, now or later, or throws `Refused`.
    // config.cpp
    void client_config(Ask& ask);
    void dynamic_config(Ask& ask);
    void healthz(Ask& ask);
    void capabilities(Ask& ask);
    void api_key_info(Ask& ask);
    void telemetry(Ask& ask);
    void metrics(Ask& ask);
    void describe(Ask& ask);
    void not_served(Ask& ask);
    void trace_export(Ask& ask);
    // sessions.cpp
    void create_session(Ask& ask);
    void session_heartbeat(Ask& ask);
    void finish_session(Ask& ask);
    void list_sessions(Ask& ask);
    void get_session(Ask& ask);
    void set_project(Ask& ask);
    void search_sessions(Ask& ask);
    // training.cpp
    void create_model(Ask& ask);
    void unload_model(Ask& ask);
    void get_info(Ask& ask);
    void forward_backward(Ask& ask);
    void forward(Ask& ask);
    void optim_step(Ask& ask);
    // weights.cpp
    void save_weights(Ask& ask);
    void save_weights_for_sampler(Ask& ask);
    void save_weights_external(Ask& ask);
    void load_weights(Ask& ask);
    void weights_info(Ask& ask);
    void copy_weights(Ask& ask);
    // sampling.cpp
    void create_sampling_session(Ask& ask);
    void join_sampling_session(Ask& ask);
    void get_sampler(Ask& ask);
    void asample(Ask& ask);
    void stream_sample(Ask& ask);
    void retrieve_future(Ask& ask);
    void retrieve_futures(Ask& ask);
    void cancel_future(Ask& ask);
    // runs.cpp
    void list_runs(Ask& ask);
    void get_run(Ask& ask);
    void list_run_checkpoints(Ask& ask);
    void list_checkpoints(Ask& ask);
    void delete_checkpoint(Ask& ask);
    void publish(Ask& ask);
    void unpublish(Ask& ask);
    void set_ttl(Ask& ask);
    void archive(Ask& ask);
    void download(Ask& ask);
    void external_urls(Ask& ask);
    void download_file(Ask& ask);
    // usage.cpp
    void audit(Ask& ask);
    void usage_events(Ask& ask);
    void storage_usage(Ask& ask);

private:
    class Sweep;
    class Stopping;
    class Later;
    class Watched;
    class Sending;

    struct Base {
        ModelSource source{};
        engine::ModelConfig config{};
        bool ready{false};
        /// Why it could not be loaded.
        std::string failure{};
    };
    struct Session {
        SessionRow row{};
        TimePoint seen{};
    };
    /// Carries a training request out, under the id that it was promised.
    using Step = tinkxx::detail::UniqueFunction<void(std::string const& request_id)>;
    struct Seen {
        Fingerprint fingerprint{};
        std::string request_id{};
    };
    /// A model in memory.
    struct Model {
        std::string id{};
        std::size_t bytes{0};
        Seen creation{};
        /// The number of the next request to be carried out.
        std::int64_t next{1};
        std::map<std::int64_t, Step> early{};
        std::map<std::int64_t, Seen> seen{};
        /// Numbers of requests that were refused, and so will never be carried out.
        std::set<std::int64_t> refused{};
        std::optional<TimePoint> gap_since{};
        std::size_t pending{0};
        std::int64_t unnumbered{0};
    };
    /// Weights to draw from, in memory or not.
    struct Drawn {
        std::string base{};
        std::string folder{};
        Training training{};
        std::size_t bytes{0};
        enum class State : std::uint8_t { absent, loading, ready } state{State::absent};
        /// What uses them now, and who waits for them to be loaded.
        std::size_t active{0};
        std::vector<tinkxx::detail::UniqueFunction<void(Result<void>)>> waiting{};
        std::uint64_t used{0};
        /// To be removed from the disk once nobody uses them.
        bool doomed{false};
    };
    /// A sample under way.
    struct Drawing {
        std::optional<engine::JobId> job{};
        std::string owner{};
        /// The key of the weights that it draws from, if they are not those of a base model.
        std::string weights{};
    };
    struct Sampled;

    Core(ServerOptions options, Scheduler& scheduler, std::unique_ptr<Home> home,
         std::map<std::string, Base> bases, ChaosPlan chaos);

    // core.cpp
    [[nodiscard]] Result<void> read_store();
    void dispatch(ServerRequest request, std::shared_ptr<Answer> answer);
    void serve(Ask& ask, void (Core::*endpoint)(Ask&));
    void log(LogLevel level, std::string const& line) const;
    void sweep();
    [[nodiscard]] std::string fresh_id();
    [[nodiscard]] Base const& base(std::string_view operation, std::string const& name) const;
    /// The body of a request as it was meant.
    [[nodiscard]] std::string body_of(Ask& ask) const;
    [[nodiscard]] static std::string base_url(Ask const& ask);
    [[nodiscard]] bool accepting() const noexcept { return !stopping_; }
    [[nodiscard]] QueueNote why_waiting(std::string const& id) const;

    // sessions.cpp
    /// The session, which must be active; counts as a sign of life.
    Session& session(std::string_view operation, std::string const& id);
    void touch_session(std::string const& id);
    /// Unloads the models of a session and removes weights that have no name.
    void end_session(Session& session);

    // training.cpp
    [[nodiscard]] Model& model(std::string_view operation, std::string const& id);
    void accept_step(Ask& ask, std::string const& model_id, std::optional<std::int64_t> seq_id,
                     Fingerprint const& fingerprint, Form form, Step step);
    void run_steps(Model& model);
    void refuse_step(std::string const& model_id, std::optional<std::int64_t> seq_id);
    void submit_pass(Ask& ask, wire::server::ForwardBackward request);
    void promise(Ask& ask, std::string const& request_id, std::string const& model_id);
    /// Ends a request of a model, which may be gone.
    void ended(std::string const& model_id, std::string const& request_id);
    void kept(std::string const& model_id, std::string const& request_id, std::string payload,
              std::vector<Change> more);
    void broken(std::string const& model_id, std::string const& request_id, Error const& error);
    void broken(std::string const& model_id, std::string const& request_id, std::string error,
                ErrorCategory category);
    void unload(std::string const& model_id);
    [[nodiscard]] std::size_t trained_bytes(Base const& base, Training const& training) const;
    void need_memory(std::string_view operation, std::size_t bytes);
    /// One that cannot be read must not hold up those behind it.
    void unreadable_step(Ask const& ask, std::string const& body);
    template <class Fn>
    auto read_step(Ask& ask, std::string const& body, Fn decode) {
        auto decoded = decode(body);
        if (!decoded) unreadable_step(ask, body);
        return good(std::move(decoded), 422);
    }

    // weights.cpp
    struct SaveJob;
    void save(Ask& ask, Kind kind);
    void saved(std::shared_ptr<SaveJob> const& job, std::string const& request_id,
               Result<void> const& outcome);
    [[nodiscard]] CheckpointRow const& checkpoint(std::string_view operation,
                                                  std::string const& path) const;
    [[nodiscard]] CheckpointRow const* find_checkpoint(TinkerPath const& path) const;
    void remove_folder(std::string const& folder);
    /// Removes a folder once nobody draws from it.
    void retire_folder(std::string const& folder);
    void forget_checkpoint(TinkerPath const& path, std::string_view event);
    [[nodiscard]] std::optional<WallTime> expiry(std::string_view operation,
                                                 std::optional<std::int64_t> ttl) const;

    // sampling.cpp
    /// Checks a request and finds what it draws from; throws `Refused`.
    [[nodiscard]] std::shared_ptr<Sampled> prepare(std::string_view operation,
                                                   wire::server::Sample const& request);
    /// Computes what was promised before a restart.
    void resume_sample(std::string const& id, std::string const& body);
    void draw(std::shared_ptr<Sampled> const& sample);
    void drawn(std::shared_ptr<Sampled> const& sample, engine::SampleResult result);
    void score_targets(std::shared_ptr<Sampled> const& sample);
    void score_samples(std::shared_ptr<Sampled> const& sample, std::size_t index);
    void finish_sample(std::shared_ptr<Sampled> const& sample);
    void fail_sample(std::shared_ptr<Sampled> const& sample, Error const& error);
    void release_sample(std::shared_ptr<Sampled> const& sample);
    void cancel_drawing(std::string const& id);
    void release(std::string const& key);
    /// Calls back once the weights are in memory.
    void with_weights(std::string const& key,
                      tinkxx::detail::UniqueFunction<void(Result<void>)> done);
    void load_drawn(std::string const& key);
    void drop_drawn(std::string const& key);
    [[nodiscard]] bool make_room(std::size_t bytes);
    void retry_starved();
    Drawn& drawn_of(CheckpointRow const& row);

    // runs.cpp
    [[nodiscard]] CheckpointRow& named_checkpoint(Ask const& ask);
    [[nodiscard]] std::string sign(std::string_view text) const;
    [[nodiscard]] std::string signed_link(Ask const& ask, std::string const& path,
                                          WallTime until) const;
    void check_link(Ask const& ask) const;
    void write_run(wire::JsonOut& json, RunRow const& run) const;
    void send_checkpoints(Ask& ask, std::vector<CheckpointRow const*> rows, std::int64_t offset,
                          std::int64_t limit) const;
    void change_checkpoint(Ask& ask, CheckpointRow const& row, std::string_view event);

    // usage.cpp
    void count_tokens(std::vector<Change>& changes, std::string const& session,
                      std::string const& base_model, std::string_view type, bool cached,
                      std::size_t tokens);
    void note_event(std::vector<Change>& changes, std::string_view event, std::string const& path);

    ServerOptions options_;
    Scheduler& scheduler_;
    AccessRules access_;
    Chaos chaos_;
    std::unique_ptr<Home> home_;
    std::unique_ptr<Worker> worker_{};
    std::unique_ptr<Store> store_{};
    std::unique_ptr<Futures> futures_{};
    Counters counters_{};
    std::string secret_{};

    std::map<std::string, Base> bases_;
    std::map<std::string, Session> sessions_{};
    std::map<std::string, RunRow> runs_{};
    std::set<std::string> dirty_runs_{};
    std::map<std::string, Model> models_{};
    /// Bytes of the bodies of training requests that are not done.
    std::map<std::string, std::size_t> step_bytes_{};
    std::size_t pending_bytes_{0};
    std::map<std::string, SamplerRow> samplers_{};
    std::map<TinkerPath, CheckpointRow> checkpoints_{};
    /// Names of checkpoints that are being saved.
    std::set<TinkerPath> reserved_{};
    std::int64_t next_ordinal_{1};
    std::map<std::string, Drawn> drawn_{};
    std::uint64_t uses_{0};
    std::size_t drawn_bytes_{0};
    std::size_t model_bytes_{0};
    /// Who waits for memory, in order.
    std::deque<std::string> starved_{};
    std::map<std::string, Drawing> drawings_{};
    /// Of samples that are promised or kept.
    std::map<std::string, Fingerprint> sample_prints_{};
    /// Requests that were promised before a restart.
    std::vector<RequestRow> unfinished_{};
    /// By hour, session, base model, type and whether cached.
    std::map<std::string, std::int64_t> usage_{};
    std::deque<std::pair<std::int64_t, std::string>> events_{};
    std::int64_t next_event_{1};
    std::deque<std::string> telemetry_{};
    /// Copies by the keys of their requests, and those that are being made.
    std::map<std::string, std::string> copies_{};
    std::set<std::string> copying_{};

    std::unique_ptr<Sweep> sweep_{};
    std::unique_ptr<Stopping> stopping_timer_{};
    std::set<std::shared_ptr<Later>> later_{};
    bool stopping_{false};
    std::shared_ptr<bool> alive_{std::make_shared<bool>(true)};
    /// Last, so that it ends first: nobody is told anything any more.
    std::unique_ptr<engine::Engine> engine_{};
};

}  // namespace tinkxx::local
