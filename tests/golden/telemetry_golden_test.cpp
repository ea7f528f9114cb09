#include <tinkxx/runtime.hpp>
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "golden.hpp"
#include "service/telemetry/telemetry_reporter.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace tinkxx::service {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using json::value_to;
using tinkxx::testing::FakeTransport;
using tinkxx::testing::ManualClock;

/// A recorded exchange, and a reporter that has to send the same.
struct GoldenTelemetry : ::testing::Test {
    ~GoldenTelemetry() override {
        reporter.reset();
        if (context) context->close();
    }

    TelemetryReporter& replay(std::string const& name) {
        recorded = golden::load("requests/0.36.0/" + name);
        auto const& requests = recorded.at("requests").as_array();
        for (auto const& request : requests) {
            auto const& response = request.at("response");
            fake->push({.status = value_to<int>(response.at("status")),
                        .body = value_to<std::string>(response.at("body_text"))});
        }
        HttpConfig config{.endpoint = Endpoint::parse("http://host").value()};
        config.log = silent_log();
        context = std::make_shared<HttpContext>(std::move(config), runtime.core(), fake,
                                                std::make_shared<FixedCredential>("tml-golden"));
        TelemetryOptions options;
        options.session_id = value_to<std::string>(requests.at(0).at("body_json").at("session_id"));
        options.sdk_version = value_to<std::string>(recorded.at("sdk_version"));
        reporter = std::make_unique<TelemetryReporter>(*context, std::move(options));
        reporter->start();
        return *reporter;
    }

    /// Compares what was sent, but for what is different every time, and `apart`.
    void compare(std::vector<std::string> const& apart = {}) const {
        auto const& requests = recorded.at("requests").as_array();
        auto const sent = fake->sent();
        ASSERT_EQ(sent.size(), requests.size());
        for (std::size_t i = 0; i < sent.size(); ++i) {
            EXPECT_EQ(sent[i].method, value_to<std::string>(requests[i].at("method")));
            EXPECT_EQ(sent[i].path, value_to<std::string>(requests[i].at("path")));
            auto expected = requests[i].at("body_json");
            auto got = json::parse(sent[i].body);
            auto const mask = [&](std::string const& pointer) {
                ASSERT_NE(got.find_pointer(pointer, error), nullptr) << pointer;
                *got.find_pointer(pointer, error) = nullptr;
                *expected.find_pointer(pointer, error) = nullptr;
            };
            for (auto const& pointer : requests[i].at("volatile_body").as_array()) {
                mask(value_to<std::string>(pointer));
            }
            for (auto const& pointer : apart) mask(pointer);
            EXPECT_EQ(got, expected);
        }
    }

    mutable boost::system::error_code error{};
    json::value recorded{};
    std::shared_ptr<ManualClock> clock{std::make_shared<ManualClock>()};
    Runtime runtime{RuntimeOptions{.threads = 0, .scheduler = clock}};
    std::shared_ptr<FakeTransport> fake{std::make_shared<FakeTransport>(*clock)};
    std::shared_ptr<HttpContext> context{};
    std::unique_ptr<TelemetryReporter> reporter{};
};

TEST_F(GoldenTelemetry, StartsASessionLikeTheOfficialSdk) {  // R-TEL-01, R-TEL-40
    replay("250-telemetry-session-start.json");
    clock->advance(10s);
    compare();
}

TEST_F(GoldenTelemetry, SendsEventsLikeTheOfficialSdk) {  // R-TEL-02, R-TEL-03
    auto& telemetry = replay("251-telemetry-generic-events.json");
    auto const& log = recorded.at("args").at("log").as_array();
    telemetry.event("user_step", Severity::debug, log.at(0).at("event_data").as_object());
    telemetry.event("empty", Severity::info, {});
    clock->advance(10s);
    compare();
}

TEST_F(GoldenTelemetry, ReportsFatalErrorsLikeTheOfficialSdk) {  // R-TEL-31
    auto& telemetry = replay("252-telemetry-fatal-exception.json");
    ErrorDetails cause;
    cause.message = "what led to it";
    ErrorDetails details;
    details.kind = ErrorKind::callback;
    details.message = "boom é";
    details.cause = std::make_shared<Error const>(std::move(cause));
    telemetry.capture(Error{std::move(details)});
    clock->run_ready();
    compare({"/events/1/error_type"});  // Python's ValueError
}

TEST_F(GoldenTelemetry, ReportsErrorsOfTheUserLikeTheOfficialSdk) {  // R-TEL-30
    auto& telemetry = replay("253-telemetry-user-error.json");
    auto const events = recorded.at("requests").at(0).at("body_json").at("events").as_array();
    for (std::size_t i : {1U, 2U}) {  // of other parts of the client
        telemetry.event(value_to<std::string>(events.at(i).at("event_name")), Severity::warning,
                        events.at(i).at("event_data").as_object());
    }
    ErrorDetails details;
    details.kind = ErrorKind::status;
    details.http_status = 400;
    details.message = value_to<std::string>(events.at(3).at("event_data").at("message"));
    details.body = R"({"detail": "bad prompt"})";
    telemetry.capture(Error{std::move(details)});
    clock->run_ready();
    compare();
}

TEST_F(GoldenTelemetry, RepeatsARefusedBatchLikeTheOfficialSdk) {  // R-TEL-22
    auto& telemetry = replay("254-telemetry-404-retried.json");
    telemetry.flush();
    clock->run_ready();
    std::size_t count = 1;
    for (auto const& wait : recorded.at("waits").as_array()) {
        ASSERT_EQ(fake->sent_count(), count++);
        auto const seconds = std::chrono::duration<double>{value_to<double>(wait.as_array().at(1))};
        clock->advance(std::chrono::duration_cast<std::chrono::nanoseconds>(seconds));
    }
    compare();
}

}  // namespace
}  // namespace tinkxx::service
