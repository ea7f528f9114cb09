// The programs of docs/testing.md.
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/faulty_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>
#include <tinkxx/tinkxx.hpp>

#include <gtest/gtest.h>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;

TEST(TestingGuide, Health) {
    auto clock =
        std::make_shared<testing::ManualClock>(testing::ManualClockOptions{.auto_advance = true});
    auto fake = std::make_shared<testing::FakeTransport>(*clock);
    fake->on("GET", "/api/v1/healthz").reply({.status = 503}).always({.body = "{}"});

    HttpClient http{{.base_url = "http://test",
                     .transport = fake,
                     .runtime = Runtime{{.threads = 0, .scheduler = clock}}}};
    auto pending = http.send({.path = "/api/v1/healthz"});

    EXPECT_EQ(pending.get().retries, 1);
    EXPECT_EQ(fake->sent().size(), 2U);
}

TEST(TestingGuide, EdgeOfATimeout) {
    auto clock = std::make_shared<testing::ManualClock>();
    auto fake = std::make_shared<testing::FakeTransport>(*clock);
    fake->on("GET", "/slow").hold();
    HttpClient http{{.base_url = "http://test",
                     .max_retries = 0,
                     .transport = fake,
                     .runtime = Runtime{{.threads = 0, .scheduler = clock}}}};
    auto pending = http.send({.path = "/slow"});
    clock->advance(59'999ms);
    EXPECT_FALSE(pending.ready());
    clock->advance(1ms);
    EXPECT_THROW(pending.get(), TimeoutError);
}

std::optional<testing::Reply> echo(testing::SentRequest const& sent) {
    return testing::Reply{.body = "you said " + sent.body};
}

TEST(TestingGuide, Scripts) {
    auto clock =
        std::make_shared<testing::ManualClock>(testing::ManualClockOptions{.auto_advance = true});
    auto fake = std::make_shared<testing::FakeTransport>(*clock);
    auto faulty = std::make_shared<testing::FaultyTransport>(
        *clock, fake, testing::FaultOptions{.seed = 7, .status = 0.2, .drop_after = 0.1});
    Runtime runtime{{.threads = 0, .scheduler = clock}};
    HttpClient http{{.base_url = "http://test", .transport = faulty, .runtime = runtime}};
    fake->on("POST", "/api/v1/*").handle(echo);
    for (int i = 0; i < 20; ++i) {
        auto pending = http.send({.method = "POST", .path = "/api/v1/x", .body = "hi"});
        EXPECT_EQ(pending.get().body, "you said hi");
    }
    EXPECT_GT(faulty->counts().status + faulty->counts().drop_after, 0U);
}

}  // namespace
}  // namespace tinkxx
