#pragma once

#include <tinkxx/service_client.hpp>
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/faulty_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "simulation/common/breaker_judge.hpp"
#include "simulation/common/messages.hpp"
#include "simulation/common/sampling_recorder.hpp"
#include "simulation/common/service_world.hpp"
#include "simulation/sampling/sampling_model.hpp"
#include "simulation/sampling/sampling_retries.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::simulation::sampling_world {

struct UserCall {
    int id{0};
    std::size_t client{0};
    std::size_t sampler{0};
    int tokens{1};
    std::int64_t samples{1};
    bool logprobs{false};
    std::chrono::milliseconds deadline{0};
    RetryOverrides retry{};
    RetryConfig config{};  ///< with the overrides
    BreakerJudge* own_breaker{nullptr};
    BreakerJudge* breaker{nullptr};  ///< its own, or that of its sampler
    RequestJudge requests{};
    BudgetJudge own_budget{};
    support::TestTimer begin{};
    support::TestTimer give_up{};
    Future<void> watched{};
    std::optional<TimePoint> begun{};
    std::optional<TimePoint> over{};
    bool cancelled{false};
    bool given_up{false};  ///< its last attempt may never have been sent
    int ends{0};
    std::string attempt{};  ///< the newest one that was sent

    [[nodiscard]] std::int64_t bytes() const { return std::int64_t{10} * tokens; }
};

/// What the answers say about the gate of one endpoint and key (R-SAMP-30..36).
struct GateModel {
    void close(TimePoint now, nanoseconds duration) {
        set = now;
        until = std::max(until.value_or(now + duration), now + duration);
        remembered = std::max(remembered.value_or(*until), *until);
    }
    void accepted(TimePoint sent) {
        if (until && sent > set) until.reset();
    }
    [[nodiscard]] bool closed(TimePoint now) const { return until && now < *until; }
    [[nodiscard]] bool recent(TimePoint now) const {
        return remembered && now < *remembered + std::chrono::seconds{10};
    }

    TimePoint set{};
    std::optional<TimePoint> until{};
    std::optional<TimePoint> remembered{};
};

/// The gate as the service sees it, by when requests were sent, and as the client may see it: for
/// it the repeats of the submit loop were sent when the loop began.
struct Gates {
    void close(TimePoint now, nanoseconds duration) {
        must.close(now, duration);
        may.close(now, duration);
    }

    GateModel must{};
    GateModel may{};
};

struct Attempt {
    int call{0};
    std::string body{};
    std::optional<int> last{};  ///< status of the last answer; 0: none came
    TimePoint loop_began{};     ///< the submit loop that made the last submit
    bool open{false};
    bool throttled{false};
    bool accepted{false};
    bool lost{false};
    BreakerJudge::Period sent_in{0};
};

struct Polls {
    bool open{false};
    bool answered{false};  ///< with a result or a failure that is final
    bool sized{false};     ///< the last answer told the size, so the next may follow at once
    std::optional<TimePoint> last{};
};

struct CompletionPolls {
    bool open{false};
    bool moved{false};
    std::int64_t cursor{0};
    std::optional<TimePoint> last{};
};

class World;

/// A service client, what it was told, and what it made of that.
class User final : public WorldClient {
public:
    User(World& world, std::size_t index) : WorldClient{index}, world_{world} {}

    World& world_;
    std::string url{};
    std::string key{};
    ModelService* service{nullptr};
    Gates* gate{nullptr};
    DispatchLimits limits{};
    std::vector<std::optional<SamplingClient>> samplers{};
    /// Of each sampler.
    std::vector<RetryConfig> configs{};
    std::vector<BreakerJudge*> breakers{};
    std::deque<BudgetJudge> budgets{};

    void let_go() { samplers.assign(samplers.size(), std::nullopt); }
    [[nodiscard]] std::int64_t byte_budget() const {
        if (limits.bytes) return *limits.bytes;
        auto const& nature = service->nature();
        return nature.has_config ? nature.dispatch_bytes.value_or(5 << 20) : 5 << 20;
    }
    [[nodiscard]] std::int64_t download_budget() const {
        auto const& nature = service->nature();
        return nature.has_config ? nature.download_bytes.value_or(50 << 20) : 50 << 20;
    }
    [[nodiscard]] std::map<std::string, std::set<std::int64_t>> const& numbers() const {
        return numbers_;
    }
    /// Whether the service has promised a result of this call and not lost it.
    [[nodiscard]] bool promised(UserCall const& call) const {
        auto const found = attempts_.find(call.attempt);
        return found != attempts_.end() && found->second.accepted && !found->second.lost;
    }

private:
    void on_request(RecordedExchange const& exchange) override;
    void on_answer(RecordedExchange const& exchange) override;
    void on_withdrawn(RecordedExchange const& exchange) override;

    void submits(RecordedExchange const& exchange);
    /// Whether its settings, and its circuit breaker, allow another request of a call.
    void check_allowed(UserCall& call, Attempt& attempt, std::string const& name);
    /// The breaker of a call is told of an answer to a submit.
    static void tell_breaker(UserCall& call, Attempt const& attempt, int status,
                             std::string const& name);
    void submit_over(RecordedExchange const& exchange, std::optional<int> status);
    void polls(RecordedExchange const& exchange);
    void asks_completions(RecordedExchange const& exchange);
    void cancels(RecordedExchange const& exchange);
    static std::string attempt_of(RecordedExchange const& exchange) {
        return std::string{json_member(exchange.body, "sampling_session_id")} + ':' +
               std::string{json_member(exchange.body, "seq_id")};
    }
    static std::string request_of(RecordedExchange const& exchange) {
        return std::string{json_member(exchange.body, "request_id")};
    }
    /// A credential came at this moment: what waited for it had passed the gate before.
    [[nodiscard]] bool token_came_now() const;
    /// When a poll that is sent now began, if that can be seen: not if it waited for a credential.
    [[nodiscard]] std::optional<TimePoint> poll_began() const;

    /// How a poll was answered.
    void poll_over(RecordedExchange const& exchange);

    std::map<std::string, Attempt> attempts_{};
    std::map<std::string, Polls> polls_{};
    std::map<std::string, CompletionPolls> completions_{};
    std::map<std::string, std::set<std::int64_t>> numbers_{};
    std::multiset<std::int64_t> open_bytes_{};
    std::int64_t open_throttled_{0};
    std::optional<TimePoint> token_came_{};
};

/// Within ten minutes all that is outstanding ends once the faults have: an unanswered request
/// takes a minute, and so does the longest wait that a server may ask for; a few of them can follow
/// each other, and calls that wait for a slot come one after the other.
class World final : public ServiceWorld<User, UserCall> {
public:
    explicit World(std::uint64_t seed) : ServiceWorld{seed, std::chrono::minutes{10}} {
        faulty_ = std::make_shared<testing::FaultyTransport>(*clock_, fake_, draw_faults());
    }
    ~World() override { end_runtime(); }
    World(World const&) = delete;
    World& operator=(World const&) = delete;

    void on_attempt_retry(AttemptRetryEvent const& event) override;

    [[nodiscard]] UserCall& call(int id) { return calls_[static_cast<std::size_t>(id)]; }
    /// Its own, or that of its client; zero for none.
    [[nodiscard]] std::chrono::milliseconds deadline_of(UserCall const& call) const {
        return call.deadline.count() > 0 ? call.deadline : default_deadline_[call.client];
    }
    [[nodiscard]] bool knows_call(int id) const {
        return id >= 0 && static_cast<std::size_t>(id) < calls_.size();
    }

private:
    void make() override;
    void make_users();
    void make_samplers(User& user);
    void make_calls();
    void make_weather();
    void calm_networks() override { faulty_->set_options({.seed = seed_}); }
    void begin(UserCall& call);
    void expect_refusal(UserCall& call);
    void check_answer(UserCall const& call, SampleResponse const& answer);
    void end(UserCall& call, std::optional<Error> const& error);
    bool explained(UserCall& call, Error const& error);
    bool gave_up_rightly(UserCall const& call, Error const& error) const;

    void look_further(User& user) override;
    void check_status(User& user, ServiceStatus const& status) override;
    void check_rest(User& user) override;
    void check_sampler(User& user, std::size_t index);
    void judge() override { count_faults(faulty_->counts()); }

    std::map<std::string, std::unique_ptr<ModelService>> services_{};
    std::shared_ptr<testing::FaultyTransport> faulty_{};
    std::map<std::string, Gates> gates_{};
    std::vector<std::chrono::milliseconds> default_deadline_{};
    /// Attempts that a circuit breaker refused, which were made again.
    std::int64_t refusals_{0};
};

}  // namespace tinkxx::simulation::sampling_world
