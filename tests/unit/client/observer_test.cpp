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
    lines.clear();
    using Kind = RecoveryEvent::Kind;
    observer->on_recovery({.kind = Kind::detected, .run_id = "r"});
    observer->on_recovery({.kind = Kind::failed,
                           .run_id = "r",
                           .attempt = 1,
                           .checkpoint = "tinker://r/weights/a",
                           .error = Error{{.message = "gone"}},
                           .delay = 5s});
    observer->on_recovery(
        {.kind = Kind::completed, .run_id = "r", .attempt = 2, .new_run_id = "s"});
    observer->on_loss({.model_id = "m"});
    observer->on_loss({.kind = LossEvent::Kind::stop, .model_id = "m", .duration = 2s});
    observer->on_loss({.kind = LossEvent::Kind::exception,
                       .model_id = "m",
                       .regularizer = "size",
                       .error = Error{{.message = "log of zero"}}});
    EXPECT_THAT(lines,
                ::testing::ElementsAre(
                    "warning run r: recovery detected",
                    "warning run r: recovery failed, attempt 1, from tinker://r/weights/a, again "
                    "in 5 s: gone",
                    "info run r: recovery completed, attempt 2, as run s",
                    "debug model m: custom loss started", "info model m: custom loss done in 2 s",
                    "error model m: regularizer size: log of zero after 0 s"));
}

}  // namespace
}  // namespace tinkxx
