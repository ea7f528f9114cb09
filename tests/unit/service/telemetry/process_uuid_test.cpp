#include "service/telemetry/process_uuid.hpp"

#include <tinkxx/testing/manual_clock.hpp>

#include "service/common/uuid.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include <unistd.h>

namespace tinkxx::service {
namespace {

using ::testing::MatchesRegex;
using tinkxx::testing::ManualClock;

constexpr auto uuid4 = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";

TEST(ProcessUuid, IsOnePerProcess) {  // R-TEL-01
    ManualClock clock{{.seed = 1}};
    ManualClock other{{.seed = 2}};
    auto const mine = process_uuid(100, clock);
    EXPECT_THAT(mine, MatchesRegex(uuid4));
    EXPECT_EQ(process_uuid(100, clock), mine);
    EXPECT_EQ(process_uuid(100, other), mine) << "whichever runtime asks";
}

TEST(ProcessUuid, IsAnotherAfterAFork) {  // R-TEL-01
    ManualClock clock;
    auto const parent = process_uuid(100, clock);
    auto const child = process_uuid(101, clock);
    EXPECT_THAT(child, MatchesRegex(uuid4));
    EXPECT_NE(child, parent);
    EXPECT_EQ(process_uuid(100, clock), parent);
}

TEST(ProcessUuid, KnowsTheSystem) {  // R-TEL-01
    EXPECT_EQ(current_pid(), ::getpid());
    EXPECT_THAT(platform_name(), MatchesRegex("[A-Z][A-Za-z_]+")) << "Linux, FreeBSD, Darwin";
}

TEST(RandomUuid, IsOfVersionFourAndNeverTheSame) {  // R-TEL-02
    Random random{7};
    std::set<std::string> seen;
    for (int i = 0; i < 1000; ++i) {
        auto const uuid = random_uuid(random);
        EXPECT_THAT(uuid, MatchesRegex(uuid4));
        EXPECT_TRUE(seen.insert(uuid).second);
    }
    EXPECT_EQ(uuid_text(0, 0), "00000000-0000-4000-8000-000000000000");
    EXPECT_EQ(uuid_text(~0ULL, ~0ULL), "ffffffff-ffff-4fff-bfff-ffffffffffff");
}

}  // namespace
}  // namespace tinkxx::service
