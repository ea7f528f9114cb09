#include "simulation/common/moody_service.hpp"

#include <algorithm>

namespace tinkxx::simulation {

using namespace std::chrono_literals;

MoodyService::MoodyService(std::string name, std::uint64_t seed, testing::ManualClock& clock,
                           Tally& tally, Trickle trickle)
    : name_{std::move(name)}, clock_{clock}, tally_{tally}, random_{seed}, trickle_{trickle} {}

void MoodyService::calm() {
    calm_ = true;
    blocked_ = false;
    outage_.end();
}

void MoodyService::go_out() {
    if (calm_) return;
    count("outage");
    outage_.begin(random_);
}

testing::Reply MoodyService::reply(std::string body, int status) {
    Reply made;
    made.status = status;
    made.headers = {{"Content-Type", "application/json"}};
    made.body = std::move(body);
    made.delay = span(calm_ ? 50ms : 500ms);
    if (!calm_ && chance(trickle_.probability)) {
        count("trickle");
        made.pieces = 1 + random_.next() % trickle_.most_pieces;
        made.piece_delay = span(2s);
    }
    return made;
}

std::optional<testing::Reply> MoodyService::common_refusal(double drawn, RefusalBounds const& below,
                                                           bool poll) {
    if (drawn < below.timeout) {
        count("408");
        return reply(chance(0.5) ? R"({"queue_state":"paused_rate_limit"})" : "", 408);
    }
    if (drawn < below.locked && !poll) {
        count("409");
        return reply(R"({"detail":"locked"})", 409);
    }
    if (drawn < below.empty) {
        count("empty 400");
        auto made = reply("", 400);
        made.pieces = 1;
        return made;
    }
    return std::nullopt;
}

testing::Reply MoodyService::new_session() {
    return reply(R"({"session_id":")" + name_ + "-" + std::to_string(sessions_++) +
                 R"(","type":"create_session"})");
}

std::chrono::nanoseconds MoodyService::span(std::chrono::nanoseconds most) {
    auto const bound = static_cast<std::uint64_t>(std::max<std::int64_t>(most.count(), 1));
    return std::chrono::nanoseconds{static_cast<std::int64_t>(random_.next() % bound)};
}

}  // namespace tinkxx::simulation
