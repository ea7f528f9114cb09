#pragma once

#include <tinkxx/http_client.hpp>
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace tinkxx {

/// A client on a fake transport and a clock that jumps over waits.
struct ClientFixture : ::testing::Test {
    std::shared_ptr<testing::ManualClock> clock{
        std::make_shared<testing::ManualClock>(testing::ManualClockOptions{.auto_advance = true})};
    Runtime runtime{RuntimeOptions{.threads = 0, .scheduler = clock, .log = silent_log()}};
    std::shared_ptr<testing::FakeTransport> fake{std::make_shared<testing::FakeTransport>(*clock)};

    [[nodiscard]] ClientOptions options() const {
        ClientOptions made;
        made.base_url = "http://host:8000";
        made.transport = fake;
        made.runtime = runtime;
        return made;
    }
    [[nodiscard]] HttpClient client() const { return HttpClient{options()}; }

    /// Runs everything that is due.
    void run() {
        while (runtime.poll()) {
        }
    }
};

}  // namespace tinkxx
