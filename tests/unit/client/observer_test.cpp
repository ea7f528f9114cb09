#include <tinkxx/observer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;

TEST(ConsoleObserver, WritesALinePerEvent) {  // R-EXT-30
    std::vector<std::string> lines;
    auto const observer = console_observer([&](LogLevel level, std::string_view line) {
        lines.push_back(std::string{to_string(level)} + " " + std::string{line});
    });
    HttpEvent const call{.method = "POST", .path = "/x", .purpose = Purpose::sample};
    observer->on_http_start({call});
    observer->on_http_retry({call, 2, 1500ms, "503"});
    observer->on_http_stop({call, 200, 2, 2s});
    observer->on_http_exception({call, Error{{.message = "no route"}}, 0, 250ms});
    EXPECT_THAT(lines, ::testing::ElementsAre("debug POST /x [sample]: started",
                                              "warning POST /x [sample]: retry 2 in 1.5 s: 503",
                                              "info POST /x [sample]: 200 in 2 s, 2 retries",
                                              "error POST /x [sample]: no route after 0.25 s"));
}

}  // namespace
}  // namespace tinkxx
