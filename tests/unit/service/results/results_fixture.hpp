#pragma once

#include <tinkxx/runtime.hpp>
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "service/http/standard_headers.hpp"
#include "service/results/result_poll.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::service {

using tinkxx::testing::FakeTransport;
using tinkxx::testing::ManualClock;
using tinkxx::testing::Reply;

/// Keeps what it is told.
struct RecordedEvents final : Telemetry {
    void event(std::string_view name, Severity severity, boost::json::object data) override {
        events.push_back({std::string{name}, severity, std::move(data)});
    }
    void capture(Error const& /*error*/) override {}

    struct Event {
        std::string name{};
        Severity severity{};
        boost::json::object data{};
    };
    std::vector<Event> events{};
};

/// A clock, a runtime without threads, a scripted server, a log, and what polls live in.
struct ResultsTest : ::testing::Test {
    static constexpr auto key = "tml-0123456789abcdef";
    static constexpr auto retrieve_path = "/api/v1/retrieve_future";

    explicit ResultsTest(std::shared_ptr<Executor> executor = {})
        : runtime{RuntimeOptions{
              .threads = 0, .executor = std::move(executor), .scheduler = clock}},
          http{std::make_shared<HttpContext>(config(), runtime.core(), fake,
                                             std::make_shared<FixedCredential>(key))},
          context{http} {
        context.set_telemetry(&telemetry);
    }
    ~ResultsTest() override {
        context.close();
        http->close();
    }

    std::shared_ptr<ClientConfig const> config() {
        ClientConfig made{{}, Endpoint::parse("http://host:8000").value()};
        made.headers = standard_headers(parity_version);
        made.headers.add("CF-Access-Client-Secret", "hush-hush");
        made.log_level = LogLevel::debug;
        made.log = [this](LogLevel level, std::string_view line) {
            lines.push_back(std::string{to_string(level)} + ": " + std::string{line});
        };
        made.scrubber.add(key);
        made.scrubber.add("hush-hush");
        return std::make_shared<ClientConfig const>(std::move(made));
    }
    /// Log lines of a level, without it.
    [[nodiscard]] std::vector<std::string> logged(LogLevel level) const {
        auto const prefix = std::string{to_string(level)} + ": ";
        std::vector<std::string> found;
        for (auto const& line : lines) {
            if (line.starts_with(prefix)) found.push_back(line.substr(prefix.size()));
        }
        return found;
    }

    std::vector<std::string> lines{};
    std::shared_ptr<ManualClock> clock{std::make_shared<ManualClock>()};
    Runtime runtime;
    std::shared_ptr<FakeTransport> fake{std::make_shared<FakeTransport>(*clock)};
    std::shared_ptr<HttpContext> http;
    ServiceContext context;
    RecordedEvents telemetry{};
    ByteBudget downloads{1000};
};

}  // namespace tinkxx::service
