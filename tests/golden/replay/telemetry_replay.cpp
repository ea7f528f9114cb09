#include "golden/recordings/golden.hpp"
#include "golden/replay/expect_sent.hpp"
#include "golden/replay/request_replay.hpp"
#include "golden/replay/stub_service.hpp"
#include "service/telemetry/telemetry_reporter.hpp"

#include <gtest/gtest.h>

namespace tinkxx::golden {

using namespace std::chrono_literals;

namespace {

service::Severity severity_named(std::string const& name) {
    using service::Severity;
    if (name == "DEBUG") return Severity::debug;
    if (name == "WARNING") return Severity::warning;
    if (name == "ERROR") return Severity::error;
    EXPECT_EQ(name, "INFO");
    return Severity::info;
}

/// The fault of a user that the recording tells of in its last event but one.
Error user_error(boost::json::array const& events) {
    auto const& data = events.at(events.size() - 2).at("event_data");
    ErrorDetails details;
    details.kind = ErrorKind::status;
    details.http_status = value_to<int>(data.at("status_code"));
    details.message = text(data, "message");
    details.body = boost::json::serialize(data.at("body"));
    return Error{std::move(details)};
}

/// The fault of a program; a cause stands in for Python's traceback.
Error fatal_error(value const& event) {
    ErrorDetails cause;
    cause.message = "what led to it";
    ErrorDetails details;
    details.kind = ErrorKind::callback;
    details.message = text(event, "error_message");
    details.cause = std::make_shared<Error const>(std::move(cause));
    return Error{std::move(details)};
}

}  // namespace

void replay_telemetry(value const& recording) {
    StubService stub{recording};
    stub.script_requests(recording);
    auto expected = recording.at("requests").as_array();
    ASSERT_FALSE(expected.empty());
    auto const events = expected.at(0).at("body_json").at("events").as_array();

    service::ClientConfig config{{}, service::Endpoint::parse("http://host").value()};
    config.log = silent_log();
    auto const context = std::make_shared<service::HttpContext>(
        std::make_shared<service::ClientConfig const>(std::move(config)), stub.runtime.core(),
        stub.transport, std::make_shared<service::FixedCredential>("tml-golden"));
    {
        service::TelemetryOptions options;
        options.session_id = text(expected.at(0).at("body_json"), "session_id");
        options.sdk_version = text(recording, "sdk_version");
        service::TelemetryReporter reporter{*context, std::move(options)};
        reporter.start();
        auto const& args = recording.at("args");
        if (auto const* log = find(args, "log")) {
            for (auto const& one : log->as_array()) {
                auto const* data = find(one, "event_data");
                reporter.event(
                    text(one, "event_name"),
                    severity_named(member<std::string>(one, "severity").value_or("INFO")),
                    data != nullptr ? data->as_object() : boost::json::object{});
            }
            stub.clock->advance(10s);
        } else if (find(args, "exception") != nullptr) {
            reporter.capture(fatal_error(events.at(1)));
            // Python's name for its kind of error.
            for (auto& request : expected) {
                request.at("volatile_body").as_array().emplace_back("/events/1/error_type");
            }
        } else {
            ASSERT_NE(find(args, "user_error"), nullptr) << "nobody here knows " << args;
            // Events of other parts of the client come first.
            for (std::size_t i = 1; i + 2 < events.size(); ++i) {
                reporter.event(text(events[i], "event_name"),
                               severity_named(text(events[i], "severity")),
                               events[i].at("event_data").as_object());
            }
            reporter.capture(user_error(events));
        }
        stub.settle();
        auto const sent = stub.seen({"/api/v1/telemetry"});
        ASSERT_EQ(sent.size(), expected.size());
        for (std::size_t i = 0; i < sent.size(); ++i) {
            EXPECT_EQ(sent[i].method + ' ' + target(sent[i]),
                      text(expected[i], "method") + ' ' + text(expected[i], "path"));
            expect_same_body(expected[i], sent[i], {.version = text(recording, "sdk_version")});
        }
    }
    context->close();
}

}  // namespace tinkxx::golden
