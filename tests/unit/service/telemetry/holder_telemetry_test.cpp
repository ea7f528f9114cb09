#include "service/telemetry/holder_telemetry.hpp"

#include "unit/service/session/session_fixture.hpp"

#include <boost/json/parse.hpp>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr auto telemetry_path = "/api/v1/telemetry";

struct HolderTelemetryTest : SessionFixture {
    HolderTelemetryTest() {
        config.sdk_version = "0.36.0";
        fake->on("POST", "/api/v1/client/*").always({.body = "{}"});
        fake->on("POST", "/api/v1/create_session").always({.body = R"({"session_id":"s-1"})"});
        fake->on("POST", "/api/v1/session_heartbeat").always({.body = "{}"});
        fake->on("POST", telemetry_path).handle([this](auto const&) -> std::optional<Reply> {
            if (!answers) return std::nullopt;
            return Reply{.body = R"({"status":"accepted"})"};
        });
    }
    ~HolderTelemetryTest() override {
        if (holder) holder->close({}, {});
        clock->advance(1min);
    }

    /// A holder with its telemetry, ready.
    Holder& ready(HolderKind kind = HolderKind::session) {
        holder = std::make_shared<Holder>(config, kind, runtime.core(), fake);
        telemetry.emplace(*holder);
        holder->start();
        clock->run_ready();
        EXPECT_TRUE(holder->ready());
        return *holder;
    }
    [[nodiscard]] std::vector<std::string> kinds() const {
        std::vector<std::string> all;
        for (auto const& sent : fake->sent(telemetry_path)) {
            auto const body = boost::json::parse(sent.body);
            for (auto const& event : body.at("events").as_array()) {
                all.emplace_back(event.at("event").as_string());
            }
        }
        return all;
    }
    [[nodiscard]] std::string session_id() const {
        auto const body = boost::json::parse(fake->sent(telemetry_path).at(0).body);
        return std::string{body.at("session_id").as_string()};
    }

    bool answers{true};
    HolderConfig config{.http = http_config(), .credentials = {.api_key = test_key}};
    std::shared_ptr<Holder> holder{};
    std::optional<HolderTelemetry> telemetry{};
};

TEST_F(HolderTelemetryTest, StartsWithTheSession) {  // R-TEL-40, R-CONF-41
    auto& one = ready();
    EXPECT_NE(one.telemetry(), nullptr);
    EXPECT_EQ(telemetry->queued(), 1U);
    clock->advance(10s);
    EXPECT_THAT(kinds(), ElementsAre("SESSION_START"));
    EXPECT_EQ(session_id(), "s-1");
}

TEST_F(HolderTelemetryTest, HasAMadeUpIdWithoutASession) {  // R-TEL-40
    auto& one = ready(HolderKind::sessionless);
    ASSERT_NE(one.telemetry(), nullptr);
    one.telemetry()->event("e", Severity::info, {});
    clock->advance(10s);
    EXPECT_THAT(kinds(), ElementsAre("GENERIC_EVENT"));
    EXPECT_THAT(session_id(), StartsWith("sessionless-"));
}

TEST_F(HolderTelemetryTest, IsNotThereForThoseWhoOptOut) {  // R-TEL-42
    config.telemetry = false;
    auto& one = ready();
    EXPECT_EQ(one.telemetry(), nullptr) << "hooks have nobody to tell";
    EXPECT_EQ(telemetry->queued(), 0U);
    bool closed = false;
    one.close({}, [&](Result<void>) { closed = true; });
    clock->advance(1h);
    EXPECT_TRUE(closed);
    EXPECT_THAT(fake->sent(telemetry_path), IsEmpty());
}

TEST_F(HolderTelemetryTest, SaysGoodbyeWhenTheHolderCloses) {  // R-TEL-41, R-SESS-24
    auto& one = ready();
    bool closed = false;
    one.close({}, [&](Result<void>) { closed = true; });
    clock->run_ready();
    EXPECT_TRUE(closed);
    EXPECT_THAT(kinds(), ElementsAre("SESSION_START", "SESSION_END"));
}

TEST_F(HolderTelemetryTest, HoldsUpACloseForFiveSecondsAtMost) {  // R-TEL-41, R-TEL-43
    answers = false;
    auto& one = ready();
    bool closed = false;
    one.close({}, [&](Result<void>) { closed = true; });
    clock->advance(5s - 1ns);
    EXPECT_FALSE(closed);
    clock->advance(1ns);
    EXPECT_TRUE(closed);
    EXPECT_EQ(fake->open_count(), 0U);
}

TEST_F(HolderTelemetryTest, TakesItsIntervalFromTheOptions) {  // R-TEST-02
    config.intervals.telemetry_flush = 50ms;
    ready();
    clock->advance(50ms);
    EXPECT_THAT(kinds(), ElementsAre("SESSION_START"));
}

}  // namespace
}  // namespace tinkxx::service
