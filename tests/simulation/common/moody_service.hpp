#pragma once

#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "service/common/random.hpp"
#include "simulation/common/outage.hpp"
#include "simulation/common/outcome.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::simulation {

/// A Tinker service in memory, with moods. What it answers depends on the seed and on what it was
/// asked before; time passes only by the clock. Loop thread only; outlives its transport's calls.
class MoodyService {
public:
    MoodyService(MoodyService const&) = delete;
    MoodyService& operator=(MoodyService const&) = delete;

    [[nodiscard]] virtual std::optional<testing::Reply> serve(
        testing::SentRequest const& request) = 0;

    /// No further moods: whatever is asked from now on is answered well and soon.
    virtual void calm();
    /// From now on, or no more, for want of payment.
    void block_billing(bool on) { blocked_ = on && !calm_; }
    /// Nobody reaches it from now on, until it is calm.
    void go_out();
    /// What a client did that no client may do.
    [[nodiscard]] std::vector<std::string> take_complaints() {
        return std::exchange(complaints_, {});
    }

protected:
    using Reply = testing::Reply;
    using Answer = std::optional<Reply>;
    /// What the paths of requests begin with.
    static constexpr std::string_view root = "/api/v1/";

    /// How often an answer comes in pieces, and in how many.
    struct Trickle {
        double probability{0};
        std::uint64_t most_pieces{1};
    };

    MoodyService(std::string name, std::uint64_t seed, testing::ManualClock& clock, Tally& tally,
                 Trickle trickle);
    ~MoodyService() = default;

    Reply reply(std::string body, int status = 200);
    /// Below which chance it refuses how.
    struct RefusalBounds {
        double timeout;
        double locked;
        double empty;
    };
    /// 408, 409 or a 400 without a body, by `drawn`; no poll gets a 409.
    std::optional<Reply> common_refusal(double drawn, RefusalBounds const& below, bool poll);
    /// The answer to `create_session`.
    Reply new_session();

    std::chrono::nanoseconds span(std::chrono::nanoseconds most);
    bool chance(double probability) { return random_.unit() < probability; }
    void count(std::string_view what) { ++tally_["service: " + std::string{what}]; }

    std::string const name_;
    testing::ManualClock& clock_;
    Tally& tally_;
    service::Random random_;
    /// How moody it is: set by who derives, once it has drawn its nature.
    double storm_{0};
    bool calm_{false};
    bool blocked_{false};
    Outage outage_{};
    std::vector<std::string> complaints_{};

private:
    Trickle const trickle_;
    int sessions_{0};
};

}  // namespace tinkxx::simulation
