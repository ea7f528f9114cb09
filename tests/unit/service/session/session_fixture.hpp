#pragma once

#include <tinkxx/runtime.hpp>
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "service/http/standard_headers.hpp"
#include "service/requests/service_request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx::service {

using tinkxx::testing::FakeTransport;
using tinkxx::testing::ManualClock;
using tinkxx::testing::Reply;

inline constexpr auto test_key = "tml-0123456789abcdef";

/// Keeps what it is told.
struct RecordedTelemetry final : Telemetry {
    void event(std::string_view name, Severity severity, boost::json::object data) override {
        events.push_back({std::string{name}, severity, std::move(data)});
    }
    void capture(Error const& error) override { captured.push_back(error); }

    struct Event {
        std::string name{};
        Severity severity{};
        boost::json::object data{};
    };
    std::vector<Event> events{};
    std::vector<Error> captured{};
};

/// A clock, a runtime without threads, a scripted transport and a log.
struct SessionFixture : ::testing::Test {
    [[nodiscard]] ClientConfig client_config(std::string const& base_url = "http://host:8000") {
        ClientConfig config{{}, Endpoint::parse(base_url).value()};
        config.credentials.api_key = test_key;
        config.headers = standard_headers(parity_version);
        config.log_level = LogLevel::debug;
        config.log = [lines = lines](LogLevel level, std::string_view line) {
            lines->push_back(std::string{to_string(level)} + ": " + std::string{line});
        };
        config.scrubber.add(test_key);
        return config;
    }
    /// Log lines of a level, without it.
    [[nodiscard]] std::vector<std::string> logged(LogLevel level) const {
        auto const prefix = std::string{to_string(level)} + ": ";
        std::vector<std::string> found;
        for (auto const& line : *lines) {
            if (line.starts_with(prefix)) found.push_back(line.substr(prefix.size()));
        }
        return found;
    }

    std::shared_ptr<ManualClock> clock{std::make_shared<ManualClock>()};
    Runtime runtime{RuntimeOptions{.threads = 0, .scheduler = clock}};
    std::shared_ptr<FakeTransport> fake{std::make_shared<FakeTransport>(*clock)};
    std::shared_ptr<std::vector<std::string>> lines{std::make_shared<std::vector<std::string>>()};
};

}  // namespace tinkxx::service
