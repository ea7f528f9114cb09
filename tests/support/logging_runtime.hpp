#pragma once

#include <tinkxx/runtime.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::support {

/// A runtime without threads on a clock of the test's, which adds its log lines to `lines`.
inline Runtime logging_runtime(std::shared_ptr<testing::ManualClock> const& clock,
                               std::shared_ptr<std::vector<std::string>> const& lines) {
    RuntimeOptions options;
    options.threads = 0;
    options.scheduler = clock;
    options.log_level = LogLevel::debug;
    options.log = [lines](LogLevel level, std::string_view line) {
        lines->push_back(std::string{to_string(level)} + ": " + std::string{line});
    };
    return Runtime{std::move(options)};
}

}  // namespace tinkxx::support
