#pragma once

#include <tinkxx/testing/manual_clock.hpp>
#include <tinkxx/types/sampling.hpp>
#include <tinkxx/types/training.hpp>

#include "simulation/local/local_host.hpp"
#include "simulation/training/training_wire.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::simulation {

/// Watches a server, and holds it to what it said: to the answers it gave before, and to those of
/// a quiet server that is asked the same things, each once and in the order of their numbers.
class LocalJudge final : public ServerWatch {
public:
    using Problem = std::function<void(std::string)>;

    /// `fetched_keep`: how long results are kept once they were fetched.
    LocalJudge(testing::ManualClock const& clock, std::chrono::nanoseconds fetched_keep,
               Problem problem, Tally& tally)
        : clock_{clock}, fetched_keep_{fetched_keep}, problem_{std::move(problem)}, tally_{tally} {}
    ~LocalJudge();

    void on_asked(Served const& served) override;
    void on_served(Served const& served) override;
    void on_clean_stop(int life) override;

    /// Whether the server may be busy with what somebody else has asked for; by default it is not.
    std::function<bool()> crowded{[] { return false; }};

    /// The life of the server in which a model was made; 0: none was, as far as is known.
    [[nodiscard]] int life_of(std::string const& model_id) const;

    /// Everything is over. Asks a quiet server the same, and compares every result that was given.
    void replay(local::Handler& quiet, testing::ManualClock& clock);
    /// The server was started once more: what it lists must be all that it ever acknowledged, and
    /// must give the numbers of the replay.
    void audit(local::Handler& server, testing::ManualClock& clock);

    // What the requests of a call came to in the replay; nothing if it made none, or not all of
    // them were done.
    [[nodiscard]] std::optional<std::vector<ForwardBackwardOutput>> passes_of(
        std::string const& mark) const;
    [[nodiscard]] std::optional<OptimStepResult> step_of(std::string const& mark) const;
    [[nodiscard]] std::optional<SampleResponse> sample_of(std::string const& mark) const;

private:
    struct Step {
        TrainRequest request{};
        Served served{};
        std::string request_id{};
    };
    struct Model {
        std::string id{};
        Step creation{};
        std::map<std::int64_t, Step> steps{};
        bool unloaded{false};
        // Of the replay.
        bool created{false};
        std::int64_t replayed{0};
    };
    struct Sampled {
        Served served{};
        std::string sampler{};
        bool seeded{false};
    };
    /// What is known of a pending result.
    struct PendingResult {
        bool step{false};
        int life{0};
        /// It must be there, come what may, until it was fetched.
        bool durable{false};
        bool finished{false};
        bool cancelled{false};
        bool acknowledged{false};  ///< the client said that it has it
        std::optional<TimePoint> fetched{};
        ServerReply result{};
        std::string accept{};
    };
    using Print = std::vector<std::optional<float>>;

    void on_step(Served const& served, ReadRequest const& read);
    void on_model(Served const& served, ReadRequest const& read);
    void on_sample(Served const& served);
    void on_poll(Served const& served);
    void on_completions(Served const& served);
    void on_result(std::string const& id, PendingResult& pending, Served const& served);

    // The replay.
    [[nodiscard]] ServerReply post(std::string_view path, std::string body, Served const& like);
    [[nodiscard]] std::string to_quiet(std::string text) const;
    [[nodiscard]] std::string from_quiet(std::string text) const;
    /// Sends what was sent, and gives the result.
    ServerReply repeat(Served const& served, std::string const& request_id);
    void create(Model& model);
    void advance(Model& model, std::int64_t to);
    void need(std::string const& path);
    [[nodiscard]] bool need_sampler(std::string const& sampler);
    void compare(std::string const& id, ServerReply quiet, bool sample);
    [[nodiscard]] static Print fingerprint(local::Handler& server, testing::ManualClock& clock,
                                           std::string const& path);
    void problem(std::string what) const { problem_(std::move(what)); }

    testing::ManualClock const& clock_;
    std::chrono::nanoseconds fetched_keep_;
    Problem problem_;
    Tally& tally_;
    std::set<std::string> sessions_{};
    std::set<std::string> finished_{};
    std::map<std::string, Model> models_{};
    std::map<std::string, Served> samplers_{};
    std::map<std::string, Sampled> samples_{};
    std::map<std::string, PendingResult> results_{};
    /// When a result of a model or a sampler was last told.
    std::map<std::string, std::optional<TimePoint>> worked_{};
    /// Paths of copies by the key of their request, and what they are copies of.
    std::map<std::string, std::string> copies_{};
    std::map<std::string, std::string> sources_{};
    /// Requests of a call, in the order of their numbers.
    std::map<std::string, std::map<std::int64_t, std::string>> by_mark_{};

    local::Handler* quiet_{nullptr};
    testing::ManualClock* quiet_clock_{nullptr};
    std::map<std::string, std::string> quiet_sessions_{};
    std::map<std::string, ServerReply> quiet_results_{};
    std::set<std::string> quiet_samplers_{};
    /// What each save of a path holds, by the number of the request.
    std::map<std::string, std::map<std::int64_t, Print>> prints_{};
    /// Saves that were acknowledged, by path: the number of the last.
    std::map<std::string, std::int64_t> saved_{};
};

}  // namespace tinkxx::simulation
