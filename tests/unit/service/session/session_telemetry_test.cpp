#include "service/session/session_telemetry.hpp"

#include "unit/service/session/session_fixture.hpp"

#include <boost/json/parse.hpp>

#include <stdexcept>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr auto telemetry_path = "/api/v1/telemetry";

struct SessionTelemetryTest : SessionFixture {
    SessionTelemetryTest() {
        config.sdk_version = "0.36.0";
        fake->on("POST", "/api/v1/client/*").always({.body = "{}"});
        fake->on("POST", "/api/v1/create_session").always({.body = R"({"session_id":"s-1"})"});
        fake->on("POST", "/api/v1/session_heartbeat").always({.body = "{}"});
        fake->on("POST", telemetry_path).handle([this](auto const&) -> std::optional<Reply> {
            if (!answers) return std::nullopt;
            return Reply{.body = R"({"status":"accepted"})"};
        });
    }
    ~SessionTelemetryTest() override {
        if (session) session->close({}, {});
        clock->advance(1min);
    }

    /// A session with its telemetry, ready.
    Session& ready(SessionKind kind = SessionKind::session) {
        session = std::make_shared<Session>(std::make_shared<ClientConfig const>(config), kind,
                                            runtime.core(), fake);
        telemetry.emplace(*session);
        session->start();
        clock->run_ready();
        EXPECT_TRUE(session->ready());
        return *session;
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
    ClientConfig config{client_config()};
    std::shared_ptr<Session> session{};
    std::optional<SessionTelemetry> telemetry{};
};

TEST_F(SessionTelemetryTest, StartsWithTheSession) {  // R-TEL-40, R-CONF-41
    auto& one = ready();
    EXPECT_NE(one.context().telemetry(), nullptr);
    EXPECT_EQ(telemetry->queued(), 1U);
    clock->advance(10s);
    EXPECT_THAT(kinds(), ElementsAre("SESSION_START"));
    EXPECT_EQ(session_id(), "s-1");
}

TEST_F(SessionTelemetryTest, HasAMadeUpIdWithoutASession) {  // R-TEL-40
    auto& one = ready(SessionKind::sessionless);
    ASSERT_NE(one.context().telemetry(), nullptr);
    one.context().telemetry()->event("e", Severity::info, {});
    clock->advance(10s);
    EXPECT_THAT(kinds(), ElementsAre("GENERIC_EVENT"));
    EXPECT_THAT(session_id(), StartsWith("sessionless-"));
}

TEST_F(SessionTelemetryTest, IsNotThereForThoseWhoOptOut) {  // R-TEL-42
    config.telemetry = false;
    auto& one = ready();
    EXPECT_EQ(one.context().telemetry(), nullptr) << "hooks have nobody to tell";
    EXPECT_EQ(telemetry->queued(), 0U);
    bool closed = false;
    one.close({}, [&](Result<void>) { closed = true; });
    clock->advance(1h);
    EXPECT_TRUE(closed);
    EXPECT_THAT(fake->sent(telemetry_path), IsEmpty());
}

TEST_F(SessionTelemetryTest, SaysGoodbyeWhenTheSessionCloses) {  // R-TEL-41, R-SESS-24
    auto& one = ready();
    bool closed = false;
    one.close({}, [&](Result<void>) { closed = true; });
    clock->run_ready();
    EXPECT_TRUE(closed);
    EXPECT_THAT(kinds(), ElementsAre("SESSION_START", "SESSION_END"));
}

TEST_F(SessionTelemetryTest, HoldsUpACloseForFiveSecondsAtMost) {  // R-TEL-41, R-TEL-43
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

/// A clock without chance for telemetry.
class NoTelemetryEntropy final : public Scheduler {
public:
    explicit NoTelemetryEntropy(ManualClock& clock) : clock_{clock} {}
    TimePoint now() const noexcept override { return clock_.now(); }
    WallTime wall() const noexcept override { return clock_.wall(); }
    std::uint64_t entropy(std::string_view stream) override {
        if (stream == "telemetry") throw std::runtime_error{"no chance"};
        return clock_.entropy(stream);
    }
    void arm(Timer& timer, TimePoint when, Precision precision) noexcept override {
        clock_.arm(timer, when, precision);
    }
    void disarm(Timer& timer) noexcept override { clock_.disarm(timer); }
    void post(Task task) override { clock_.post(std::move(task)); }
    bool on_loop() const noexcept override { return clock_.on_loop(); }
    bool turn(std::chrono::nanoseconds limit) override { return clock_.turn(limit); }

private:
    ManualClock& clock_;
};

TEST_F(SessionTelemetryTest, ThatCannotBeStartedOnlyWarns) {  // R-TEL-23
    runtime = Runtime{
        RuntimeOptions{.threads = 0, .scheduler = std::make_shared<NoTelemetryEntropy>(*clock)}};
    auto& one = ready();
    EXPECT_EQ(one.context().telemetry(), nullptr);
    EXPECT_EQ(telemetry->queued(), 0U);
    EXPECT_THAT(logged(LogLevel::warning),
                ElementsAre("telemetry could not be started and stays off: no chance"));
    bool closed = false;
    one.close({}, [&](Result<void>) { closed = true; });
    clock->run_ready();
    EXPECT_TRUE(closed);
    EXPECT_THAT(fake->sent(telemetry_path), IsEmpty());
}

TEST_F(SessionTelemetryTest, TakesItsIntervalFromTheOptions) {  // R-TEST-02
    config.intervals.telemetry_flush = 50ms;
    ready();
    clock->advance(50ms);
    EXPECT_THAT(kinds(), ElementsAre("SESSION_START"));
}

}  // namespace
}  // namespace tinkxx::service
