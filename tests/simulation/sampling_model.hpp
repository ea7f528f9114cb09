#pragma once

#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "service/common/random.hpp"
#include "simulation/outage.hpp"
#include "simulation/outcome.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::simulation {

/// What a service tells its clients to do, drawn by seed.
struct ServiceNature {
    bool has_config{true};
    bool tokens{false};
    bool completion_poll{false};
    /// Announces completions but has no endpoint for them.
    bool completion_poll_missing{false};
    bool cancels{false};
    bool no_retries{false};
    bool stuck_detection{true};
    std::optional<std::int64_t> max_concurrent{};
    std::optional<std::int64_t> dispatch_bytes{};
    std::optional<std::int64_t> download_bytes{};
    std::chrono::seconds billing_limit{3600};
    /// Promises that are lost are answered with 404 in place of 410.
    bool lost_is_404{false};
    /// Refuses members of requests that are newer than 0.25.0.
    bool old_members{false};
    /// Says nothing about the ids of sequences.
    bool no_sequence_ids{false};
    /// Longest that a poll is held back; zero: never.
    std::chrono::nanoseconds hold{std::chrono::seconds{30}};
    std::chrono::nanoseconds longest_sample{std::chrono::seconds{20}};
    /// Larger results are announced by their size first.
    std::size_t inline_bytes{1U << 20U};
};

/// A Tinker service in memory, with moods. What it answers depends on the seed and on what it was
/// asked before; time passes only by the clock. Loop thread only; outlives its transport's calls.
class ModelService {
public:
    ModelService(std::string name, std::uint64_t seed, testing::ManualClock& clock, Tally& tally);

    [[nodiscard]] std::optional<testing::Reply> serve(testing::SentRequest const& request);

    /// No further moods: whatever is asked from now on is answered well and soon.
    void calm();
    /// Everything under way is lost.
    void restart();
    /// From now on, or no more, for want of payment.
    void block_billing(bool on);
    /// Nobody reaches it from now on, until it is calm.
    void go_out();

    [[nodiscard]] ServiceNature const& nature() const noexcept { return nature_; }
    /// Tokens that were given out: secrets.
    [[nodiscard]] std::vector<std::string> const& tokens() const noexcept { return tokens_; }
    /// What a client did that no client may do.
    [[nodiscard]] std::vector<std::string> take_complaints() {
        return std::exchange(complaints_, {});
    }

private:
    struct PromiseOf {
        std::string body{};
        std::string sampling_session{};
        TimePoint done{};
        bool failed{false};
        bool cancelled{false};
        bool announced{false};
        bool protobuf{false};
        std::size_t padding{0};
        std::string sequence_ids{};
    };
    struct Event {
        std::string request_id{};
        TimePoint visible{};
        bool failed{false};
        std::size_t size{0};
    };
    using Reply = testing::Reply;
    using Answer = std::optional<Reply>;

    static ServiceNature draw_nature(service::Random& random);

    Answer client_config();
    Answer dynamic_config();
    Answer auth_token();
    Answer submit(testing::SentRequest const& request);
    Answer accept(std::string const& id, PromiseOf const& promise);
    Answer poll(testing::SentRequest const& request);
    Answer finished(std::string const& id, PromiseOf& promise, bool allow_metadata,
                    bool protobuf_wanted, std::chrono::nanoseconds delay);
    Answer completions(testing::SentRequest const& request);
    Answer cancel(testing::SentRequest const& request);
    /// A mood that any request may meet; none: it is answered.
    std::optional<Answer> mood(testing::SentRequest const& request);
    Answer refusal(testing::SentRequest const& request);
    Reply lost(std::string const& id) const;
    [[nodiscard]] std::string result_json(PromiseOf const& promise) const;
    [[nodiscard]] std::string result_proto(PromiseOf const& promise) const;
    void check_credential(testing::SentRequest const& request);

    Reply reply(std::string body, int status = 200);
    std::chrono::nanoseconds span(std::chrono::nanoseconds most);
    bool chance(double probability) { return random_.unit() < probability; }
    void count(std::string_view what) { ++tally_["service: " + std::string{what}]; }

    std::string const name_;
    testing::ManualClock& clock_;
    Tally& tally_;
    service::Random random_;
    ServiceNature nature_;
    double storm_;
    bool calm_{false};
    bool blocked_{false};
    Outage outage_{};
    int sessions_{0};
    std::map<std::string, PromiseOf> promises_{};
    std::map<std::string, std::vector<Event>> logs_{};  ///< by sampling session
    std::vector<std::string> tokens_{};
    std::vector<std::string> complaints_{};
};

/// The value of a number or text among the members of a small JSON object, as it stands there.
/// Good enough for what the library writes.
[[nodiscard]] std::string_view json_member(std::string_view json, std::string_view name);
/// The first token of the prompt of a submit, which names the user's call; -1 if there is none.
[[nodiscard]] int call_of(std::string_view submit_body);

}  // namespace tinkxx::simulation
