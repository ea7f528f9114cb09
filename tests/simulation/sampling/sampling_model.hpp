#pragma once

#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "simulation/common/moody_service.hpp"

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
    /// Results that are lost are answered with 404 in place of 410.
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

/// A service that gives samples.
class ModelService final : public MoodyService {
public:
    ModelService(std::string name, std::uint64_t seed, testing::ManualClock& clock, Tally& tally);

    [[nodiscard]] std::optional<testing::Reply> serve(testing::SentRequest const& request) override;
    void calm() override;
    /// Everything under way is lost.
    void restart();

    [[nodiscard]] ServiceNature const& nature() const noexcept { return nature_; }
    /// Tokens that were given out: secrets.
    [[nodiscard]] std::vector<std::string> const& tokens() const noexcept { return tokens_; }

private:
    struct PendingResult {
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
    static ServiceNature draw_nature(service::Random& random);

    Answer client_config();
    Answer dynamic_config();
    Answer auth_token();
    Answer submit(testing::SentRequest const& request);
    Answer accept(std::string const& id, PendingResult const& pending);
    Answer poll(testing::SentRequest const& request);
    Answer finished(std::string const& id, PendingResult& pending, bool allow_metadata,
                    bool protobuf_wanted, std::chrono::nanoseconds delay);
    Answer completions(testing::SentRequest const& request);
    Answer cancel(testing::SentRequest const& request);
    /// A mood that any request may meet; none: it is answered.
    std::optional<Answer> mood(testing::SentRequest const& request);
    Answer refusal(testing::SentRequest const& request);
    Reply lost(std::string const& id) const;
    [[nodiscard]] std::string result_json(PendingResult const& pending) const;
    [[nodiscard]] std::string result_proto(PendingResult const& pending) const;
    void check_credential(testing::SentRequest const& request);

    ServiceNature nature_;
    std::map<std::string, PendingResult> results_{};
    std::map<std::string, std::vector<Event>> logs_{};  ///< by sampling session
    std::vector<std::string> tokens_{};
};

/// The first token of the prompt of a submit, which names the user's call; -1 if there is none.
[[nodiscard]] int call_of(std::string_view submit_body);

}  // namespace tinkxx::simulation
