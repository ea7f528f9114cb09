// Watches and recoveries, ended at awkward moments.
#include <tinkxx/recovery.hpp>
#include <tinkxx/testing/fake_transport.hpp>

#include "thread/crew.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;
using testing::crew;
using testing::FakeTransport;
using testing::race;
using testing::Reply;
using testing::SentRequest;

/// On the loop thread. Every second run is lost, and no model can be made in its place.
std::optional<Reply> serve_runs(SentRequest const& request) {
    Reply reply;
    reply.headers = {{"Content-Type", "application/json"}};
    reply.body = "{}";
    if (request.path.ends_with("/create_session")) reply.body = R"({"session_id":"s"})";
    if (request.path.find("/training_runs/") != std::string::npos) {
        bool const lost = (request.path.back() - '0') % 2 == 0;
        reply.body =
            R"({"training_run_id":"r","base_model":"m","model_owner":"o","is_lora":true,)"
            R"("last_request_time":"t","last_checkpoint":{"checkpoint_id":"a",)"
            R"("checkpoint_type":"training","time":"t","tinker_path":"tinker://r/weights/a"},)"
            R"("corrupted":)" +
            std::string{lost ? "true}" : "false}"};
    }
    return reply;
}

TEST(RecoveryRace, MonitorsComeAndGoWhileTheirRunsAreLost) {  // R-EXT-41, R-EXT-42
    Runtime const runtime{RuntimeOptions{.log = silent_log()}};
    auto const transport = std::make_shared<FakeTransport>(runtime.scheduler());
    transport->otherwise(serve_runs);
    ClientOptions options;
    options.base_url = "http://host";
    options.api_key = "tml-test-key";
    options.telemetry = false;
    options.transport = transport;
    options.runtime = runtime;
    ServiceClient const service{options};
    auto const told = std::make_shared<std::atomic<int>>(0);
    RecoveryPolicy policy;
    policy.enabled = true;
    policy.max_attempts = 2;
    policy.backoff = 1ms;
    policy.poll_interval = 1ms;
    policy.on_failure = [told](std::string const&, Error const&) { ++*told; };
    RecoveryMonitor const shared{service, policy};

    race(crew, [&](int me) {
        for (int i = 0; i < 12; ++i) {
            RecoveryMonitor monitor{service, policy};
            auto const run_id = "run-" + std::to_string((me + i) % 10);
            auto own = monitor.watch(run_id);
            auto common = shared.watch(run_id);
            for (int n = 0; n < (me + i) % 7; ++n) std::this_thread::yield();
            if (i % 4 == 0) own.cancel();
            if (i % 4 == 1) shared.forget(run_id);
            if (i % 4 == 2) monitor = {};
            // Lost, and so to end by itself; or ended before, by whomever.
            if (i % 4 == 3 && (me + i) % 2 == 0) {
                EXPECT_FALSE(own.result().has_value());
            }
            common.cancel();
        }
        if (me == 0) {
            auto closing = service.close();
            (void)closing.result();
        }
    });
    (void)service.close().result();
    EXPECT_TRUE(shared.watched().get().empty());
    EXPECT_EQ(transport->open_count(), 0U);
}

}  // namespace
}  // namespace tinkxx
