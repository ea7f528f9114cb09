#include "service/session/shadow.hpp"

#include "unit/service/session/session_fixture.hpp"

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;

struct ShadowTest : SessionFixture {
    std::shared_ptr<Session> share(std::string const& session_id = "s-1") {
        return shared_shadow(*runtime.core(), session_id, config, [&] {
            ++made;
            return std::make_shared<Session>(std::make_shared<ClientConfig const>(config),
                                             SessionKind::shadow, runtime.core(), fake,
                                             SessionSnapshot{.session_id = session_id});
        });
    }
    ClientConfig config{client_config()};
    int made{0};
};

TEST_F(ShadowTest, IsSharedBySessionAndOptions) {  // R-SESS-31
    auto const first = share();
    EXPECT_EQ(share(), first);
    auto const other_session = share("s-2");
    EXPECT_NE(other_session, first);
    config.credentials.api_key = "tml-other";
    auto const other_account = share();
    EXPECT_NE(other_account, first);
    EXPECT_EQ(made, 3);
}

TEST_F(ShadowTest, IsNotSharedAcrossRuntimes) {  // R-SESS-31, C-58
    auto const first = share();
    Runtime const other{RuntimeOptions{.threads = 0, .scheduler = clock}};
    auto const second = shared_shadow(*other.core(), "s-1", config, [&] {
        return std::make_shared<Session>(std::make_shared<ClientConfig const>(config),
                                         SessionKind::shadow, other.core(), fake,
                                         SessionSnapshot{.session_id = "s-1"});
    });
    EXPECT_NE(second, first);
}

TEST_F(ShadowTest, IsClosedWithItsLastShare) {  // R-SESS-31, R-SESS-20
    fake->on("POST", "*").always({.body = "{}"});
    auto first = share();
    auto second = share();
    auto const session = first->shared_from_this();
    session->start();
    clock->advance(10s);
    EXPECT_EQ(fake->sent("/api/v1/session_heartbeat").size(), 1U);
    first.reset();
    clock->run_ready();
    EXPECT_TRUE(session->ready());
    second.reset();
    clock->run_ready();
    EXPECT_FALSE(session->ready());
    clock->advance(1min);
    EXPECT_EQ(fake->sent("/api/v1/session_heartbeat").size(), 1U);
    EXPECT_NE(share().get(), session.get()) << "a closed one is not given out again";
    clock->run_ready();
}

TEST_F(ShadowTest, MayGoAwayAfterItsRuntime) {
    auto const one = share();
    one->start();
    clock->run_ready();
    runtime.shutdown();
}

}  // namespace
}  // namespace tinkxx::service
