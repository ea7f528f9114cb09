#pragma once

#include <tinkxx/local/options.hpp>
#include <tinkxx/scheduler.hpp>

#include "engine/engine.hpp"
#include "local/api/access.hpp"
#include "local/api/ask.hpp"
#include "local/api/fingerprint.hpp"
#include "local/api/handler.hpp"
#include "local/api/pieces.hpp"
#include "local/core/chaos.hpp"
#include "local/core/counters.hpp"
#include "local/results/results.hpp"
#include "local/store/home.hpp"
#include "local/store/rows.hpp"
#include "local/store/store.hpp"
#include "local/store/stored.hpp"
#include "wire/server_requests.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <exception>
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

    /// Begins to load models and to compute what was accepted before.
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
    static constexpr std::size_t small_json = std::size_t{1} << 20U;
    static constexpr std::size_t row_bytes = 512;

    class Sweep;
    class Stopping;
    class Later;
    class Watched;
    class Turn;

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
    using Sessions = std::map<std::string, Session>;
    /// Carries a training request out, under the id of its result.
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
        /// What it is loaded from is being checked; steps wait.
        bool held{false};
        /// It is unloaded once it is held no longer, after what was asked of it before.
        bool ending{false};
        /// Steps without a number, or with one that had its turn, that wait for it.
        std::vector<std::pair<std::string, Step>> unordered{};
        std::size_t pending{0};
        std::int64_t unnumbered{0};
    };
    /// Weights to sample from, in memory or not.
    struct LoadedWeights {
        std::string base{};
        std::string folder{};
        Training training{};
        FileMarks files{};
        /// What its client calls it, for messages.
        std::string name{};
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
    struct PendingSample {
        std::optional<engine::JobId> job{};
        std::string owner{};
        /// The key of the weights that it samples from, if they are not those of a base model.
        std::string weights{};
        /// Whom it counts for, and what it holds or may come to hold.
        std::string session{};
        std::size_t bytes{0};
    };
    /// Of one session.
    struct Share {
        std::size_t samples{0};
    };
    struct SampleJob;
    struct SampleRead;

    Core(ServerOptions options, Scheduler& scheduler, std::unique_ptr<Home> home,
         std::map<std::string, Base> bases, ChaosPlan chaos);

    // core.cpp
    /// Reads what is kept, puts aside what cannot be read, and finishes what was cut short.
    [[nodiscard]] Result<void> read_store(Database& database);
    [[nodiscard]] Result<void> reconcile(Inventory const& inventory);
    void serve(Ask& ask, void (Core::*endpoint)(Ask&));
    /// Runs a part of an endpoint; whatever it throws is the answer.
    template <class Fn>
    void guarded(Ask& ask, Fn const& part);
    void answer_failure(Ask& ask, std::exception_ptr const& failure);
    void log(LogLevel level, std::string const& line) const;
    /// Looks for what has become old, piece by piece.
    void sweep();
    struct Look;
    bool look_at_rows(Look& look);
    void finish_sweep(Look& look);
    [[nodiscard]] std::string fresh_id();
    [[nodiscard]] Base const& base(std::string_view operation, std::string const& name) const;
    [[nodiscard]] static std::string base_url(Ask const& ask);

    // Bodies. The loop reads small ones only: all that takes time or memory is done by workers.

    /// Reads the body by `read(std::string)`, which gives a `Result`, and goes on with
    /// `then(ask, value)` on the loop. `ask` is used up. `most`: bytes of the body, once it is
    /// decompressed. `read` must not touch the core.
    template <class Read, class Then>
    void with_body(Ask& ask, std::size_t most, Read read, Then then);
    /// As above, for JSON of the size that most requests have.
    template <class Read, class Then>
    void with_json(Ask& ask, Read read, Then then) {
        with_body(ask, small_json, std::move(read), std::move(then));
    }
    /// What a body may take, for those that carry data.
    [[nodiscard]] std::size_t most_bytes(Ask const& ask) const;
    /// Queues the reading of a body; refuses it if too much is waiting.
    void read_elsewhere(std::string const& operation, std::size_t bytes, Task work, Task done);
    [[nodiscard]] Worker& reader(std::size_t bytes);

    /// Calls `change(ask, turn)` when all changes before it are written or have failed; the next
    /// one follows when `turn` is let go of. For what reads a row, changes it and writes it back.
    void in_turn(Ask& ask,
                 tinkxx::detail::UniqueFunction<void(Ask&, std::shared_ptr<Turn>)> change);
    void next_turn();
    /// Writes `changes`, then calls `written`, which answers; if that fails, answers why.
    void commit(std::shared_ptr<Answer> const& answer, std::string_view operation,
                std::vector<Change> changes, tinkxx::detail::UniqueFunction<void()> written);
    [[nodiscard]] bool accepting() const noexcept { return !stopping_; }
    [[nodiscard]] QueueNote why_waiting(std::string const& id) const;

    // sessions.cpp
    /// The session, which must be active; counts as a sign of life.
    Session& session(std::string_view operation, std::string const& id);
    void touch_session(std::string const& id);
    /// Unloads the models of a session and removes weights that have no name.
    void end_session(Session& session);
    void expire_session(Session& session);
    /// Makes room for one more session: expires the one that was silent for longest and has neither
    /// a model nor a sampler.
    void make_room_for_session();
    /// How long a session may be silent: less if memory for sessions is scarce, and it has nothing.
    [[nodiscard]] std::chrono::seconds patience_with(std::string const& session) const;
    /// Whether a session that has ended is of no use to anybody.
    [[nodiscard]] bool may_forget(std::string const& id) const;
    /// Of these, with the times at which they were created, forgets those that ended long ago, or
    /// are too many.
    void forget_sessions(std::vector<std::pair<WallTime, std::string>> ended);
    /// What rows count for among `Limits::kept_bytes`.
    [[nodiscard]] static std::size_t kept_bytes_of(SessionRow const& row) noexcept;
    [[nodiscard]] static std::size_t kept_bytes_of(RunRow const& row) noexcept;
    [[nodiscard]] std::size_t kept_bytes_of_session(std::string const& id) const;
    /// Counts a new row with so many bytes of metadata; refuses it if there is no room.
    void keep(std::string_view operation, std::size_t bytes);
    void send_found(Ask& ask, wire::server::SearchSessions search);
    void write_found(wire::JsonOut& json, SessionRow const& row) const;
    void check_metadata(std::string_view operation, std::size_t bytes) const;
    void count_part(std::string_view operation, std::string const& session, std::string_view what,
                    std::size_t have) const;

    // training.cpp
    [[nodiscard]] Model& model(std::string_view operation, std::string const& id);
    /// `bytes`: what the request holds in memory until it is done.
    void accept_step(Ask& ask, std::string const& model_id, std::optional<std::int64_t> seq_id,
                     Fingerprint const& fingerprint, Form form, std::size_t bytes, Step step);
    void run_steps(Model& model);
    /// Carries a step out that is not ordered by its number.
    void run_unordered(Model& model, std::string const& request_id, Step step);
    void refuse_step(std::string const& model_id, std::optional<std::int64_t> seq_id);
    void make_model(Ask& ask, wire::server::CreateModel request);
    void check_new_run(std::string_view operation, std::string const& session,
                       Texts const& metadata);
    void send_info(Ask& ask, std::string const& id);
    void submit_step(Ask& ask, wire::server::OptimStep request);
    struct Pass;
    void read_pass(Ask& ask, std::string_view operation, bool protobuf);
    void submit_pass(Ask& ask, Pass pass);
    /// Keeps the result of a pass, which `encode` writes: off the loop if it is large.
    void passed(std::string const& model_id, std::string const& request_id, std::size_t tokens,
                std::size_t bytes, tinkxx::detail::UniqueFunction<std::string()> encode);
    void send_request_id(Ask& ask, std::string const& request_id, std::string const& model_id);
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
    /// As `with_body`, for a training request: one that cannot be read must not hold up those
    /// behind it.
    template <class Read, class Then>
    void with_step(Ask& ask, std::size_t most, Read read, Then then);

    // weights.cpp
    struct SaveJob;
    void save(Ask& ask, Kind kind);
    void submit_save(Ask& ask, Kind kind, wire::server::Save save);
    void give_up_save(std::shared_ptr<SaveJob> const& job, std::string const& request_id,
                      Error const& error);
    /// Makes a checkpoint of a folder that has its temporary name, in place of an older one of the
    /// same path. `more` is committed with it.
    void keep_checkpoint(CheckpointRow const& row, std::string_view event, std::vector<Change> more,
                         Store::Written done);
    void count_samplers(std::string_view operation, std::string const& session);
    void load_into_model(Ask& ask, wire::server::LoadWeights const& request,
                         Fingerprint const& print);
    /// A new model as a checkpoint has it.
    void load_new_model(Ask& ask, wire::server::LoadWeights const& request,
                        Fingerprint const& print);
    /// Loads a checkpoint into a model, before anything that is asked of the model from now on.
    void load_model(std::string const& id, CheckpointRow const& row, engine::OptimizerState state,
                    engine::Done<engine::AdapterInfo> done);
    void make_copy(Ask& ask, wire::server::CopyWeights const& request);
    void saved(std::shared_ptr<SaveJob> const& job, std::string const& request_id,
               Result<void> const& outcome);
    void keep_saved(std::shared_ptr<SaveJob> const& job, std::string const& request_id);
    /// Gives a folder its name once its row is safe, and says whether that worked.
    void finish_folder(std::string const& folder, Store::Written done);
    [[nodiscard]] CheckpointRow const& checkpoint(std::string_view operation,
                                                  std::string const& path) const;
    [[nodiscard]] CheckpointRow const* find_checkpoint(TinkerPath const& path) const;
    /// Removes a folder that no row names any more.
    void remove_folder(std::string const& folder);
    /// Removes what has a temporary name.
    void remove_temporary(std::string const& name);
    /// Removes a folder once nobody samples from it.
    void retire_folder(std::string const& folder);
    void forget_checkpoint(std::shared_ptr<Answer> const& answer, TinkerPath const& path,
                           std::string_view event, std::shared_ptr<Turn> turn);
    /// Checks the files of a checkpoint, has the engine load it, and calls `submitted`.
    void load_adapter(engine::LoadAdapter job, std::string name, FileMarks files, Task submitted,
                      engine::Done<engine::AdapterInfo> done);
    [[nodiscard]] std::optional<WallTime> expiry(std::string_view operation,
                                                 std::optional<std::int64_t> ttl) const;

    // sampling.cpp
    /// Checks a request and finds the weights that it samples from; throws `Refused`.
    [[nodiscard]] std::shared_ptr<SampleJob> prepare(std::string_view operation, SampleRead read);
    void make_sampler(Ask& ask, wire::server::CreateSamplingSession const& request);
    /// What there is to say of a request without regard to any model. Any thread.
    [[nodiscard]] static SampleRead understand(std::string_view operation, std::size_t most_tokens,
                                               std::size_t most_cells,
                                               wire::server::Sample request);
    void read_sample(Ask& ask, tinkxx::detail::UniqueFunction<void(Ask&, SampleRead)> then);
    void submit_sample(Ask& ask, SampleRead read);
    void submit_stream(Ask& ask, SampleRead read);
    /// Throws `Refused` if there is no room for it.
    void admit_sample(std::string_view operation, SampleJob const& sample) const;
    void begin_sample(SampleJob const& sample, std::string const& owner);
    /// It does not count any more.
    void end_sample(std::map<std::string, PendingSample>::iterator at);
    /// Computes samples that were accepted before a restart.
    void resume_samples();
    void resume_sample(std::string const& id, std::string const& body);
    void resume_sample(std::string const& id, Result<wire::server::Sample> decoded);
    void compute(std::shared_ptr<SampleJob> const& sample);
    void sampled(std::shared_ptr<SampleJob> const& sample, engine::SampleResult result);
    void score_targets(std::shared_ptr<SampleJob> const& sample);
    void score_samples(std::shared_ptr<SampleJob> const& sample, std::size_t index);
    void finish_sample(std::shared_ptr<SampleJob> const& sample);
    void keep_sample(std::shared_ptr<SampleJob> const& sample, std::string payload);
    void fail_sample(std::shared_ptr<SampleJob> const& sample, Error const& error);
    void release_sample(std::shared_ptr<SampleJob> const& sample);
    void cancel_sample(std::string const& id);
    void release(std::string const& key);
    /// Calls back once the weights are in memory.
    void with_weights(std::string const& key,
                      tinkxx::detail::UniqueFunction<void(Result<void>)> done);
    void load_for_sampling(std::string const& key);
    void drop_weights(std::string const& key);
    [[nodiscard]] bool make_room(std::size_t bytes);
    void retry_starved();
    LoadedWeights& weights_of(CheckpointRow const& row);

    // runs.cpp
    [[nodiscard]] CheckpointRow& named_checkpoint(Ask const& ask);
    [[nodiscard]] std::string sign(std::string_view text) const;
    [[nodiscard]] std::string signed_link(Ask const& ask, std::string const& path,
                                          WallTime until) const;
    void check_link(Ask const& ask) const;
    void write_run(wire::JsonOut& json, RunRow const& run) const;
    /// Those of a run, or all if `run` is empty.
    void send_checkpoints(Ask& ask, std::string run, std::int64_t offset, std::int64_t limit);
    /// Refuses to change a checkpoint while another one is being saved under its name.
    void check_unreserved(std::string_view operation, TinkerPath const& path) const;
    /// Writes the checkpoint of a request as `change(row)` leaves it, if that returns true.
    void change_checkpoint(Ask& ask, std::string_view event,
                           tinkxx::detail::UniqueFunction<bool(CheckpointRow&)> change);

    // usage.cpp
    void count_tokens(std::vector<Change>& changes, std::string const& session,
                      std::string const& base_model, std::string_view type, bool cached,
                      std::size_t tokens);
    /// Adds an event to `changes`. Call the returned function once they are written.
    [[nodiscard]] tinkxx::detail::UniqueFunction<void()> note_event(std::vector<Change>& changes,
                                                                    std::string_view event,
                                                                    std::string const& path);
    void forget_usage();
    struct UsageReport;
    /// Does a piece of the report; returns whether all that is to be read on the loop is read.
    bool read_usage(UsageReport& report) const;

    ServerOptions options_;
    Scheduler& scheduler_;
    AccessRules access_;
    Chaos chaos_;
    std::unique_ptr<Home> home_;
    /// Of the store, of files, of bodies (small ones do not wait for large ones), and of results.
    std::unique_ptr<Worker> worker_{};
    std::unique_ptr<Worker> file_worker_{};
    std::array<std::unique_ptr<Worker>, 2> readers_{};
    std::unique_ptr<Worker> result_worker_{};
    std::array<std::size_t, 2> reading_bytes_{};
    std::unique_ptr<Store> store_{};
    std::unique_ptr<Results> results_{};
    Counters counters_{};
    std::string secret_{};

    std::map<std::string, Base> bases_;
    Sessions sessions_{};
    std::size_t active_sessions_{0};
    /// What is remembered of sessions, models and samplers. Counted anew by each sweep.
    std::size_t kept_bytes_{0};
    Pieces lists_{scheduler_};
    Pieces sweeping_{scheduler_};
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
    std::map<std::string, LoadedWeights> weights_{};
    std::uint64_t uses_{0};
    std::size_t weights_bytes_{0};
    std::size_t model_bytes_{0};
    /// Who waits for memory, in order.
    std::deque<std::string> starved_{};
    std::map<std::string, PendingSample> pending_samples_{};
    std::map<std::string, Share> shares_{};
    std::size_t sample_bytes_{0};
    /// Samplers whose rows are being written.
    std::map<std::string, SamplerRow> new_samplers_{};
    /// Of samples that are pending or kept.
    std::map<std::string, Fingerprint> sample_prints_{};
    /// Requests that were accepted before a restart.
    std::vector<RequestRow> unfinished_{};
    /// Folders to be removed once there is a loop.
    std::vector<std::string> abandoned_{};
    std::vector<std::string> over_{};
    /// By hour, session, base model, type and whether cached.
    std::map<std::string, std::int64_t> usage_{};
    std::deque<std::pair<std::int64_t, std::string>> events_{};
    std::int64_t next_event_{1};
    /// Copies by the keys of their requests, and those that are being made.
    std::map<std::string, std::string> copies_{};
    std::set<std::string> copying_{};

    std::deque<std::pair<Ask, tinkxx::detail::UniqueFunction<void(Ask&, std::shared_ptr<Turn>)>>>
        turns_{};
    bool taking_turn_{false};

    std::unique_ptr<Sweep> sweep_{};
    std::unique_ptr<Stopping> stopping_timer_{};
    std::set<std::shared_ptr<Later>> later_{};
    bool stopping_{false};
    std::shared_ptr<bool> alive_{std::make_shared<bool>(true)};
    /// Last, so that it ends first: nobody is told anything any more.
    std::unique_ptr<engine::Engine> engine_{};
};

}  // namespace tinkxx::local
