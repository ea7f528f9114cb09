#include "engine/time_share.hpp"

#include <gtest/gtest.h>

namespace tinkxx::engine {
namespace {

using namespace std::chrono_literals;

TEST(TimeShare, GivesEachKindHalfOfTheTime) {
    TimeShare share;
    auto sampling = 0ms;
    auto training = 0ms;
    for (int i = 0; i < 1000; ++i) {
        auto const kind = share.next(true, true).value();
        auto const took = kind == WorkKind::sampling ? 3ms : 100ms;
        (kind == WorkKind::sampling ? sampling : training) += took;
        share.ran(kind, took);
    }
    EXPECT_LE(abs(sampling - training), 100ms);
}

TEST(TimeShare, LetsSamplingGoFirstAfterAPauseWithoutCreditForIt) {
    TimeShare share;
    for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(share.next(false, true), WorkKind::training);
        share.ran(WorkKind::training, 100ms);
    }
    // It may catch up with the one slice that it had to wait for, and no more.
    auto first = 0ms;
    while (share.next(true, true) == WorkKind::sampling) {
        share.ran(WorkKind::sampling, 10ms);
        first += 10ms;
    }
    EXPECT_GT(first, 0ms);
    EXPECT_LE(first, 110ms);
}

TEST(TimeShare, HasNobodyWhereThereIsNoWork) {
    TimeShare share;
    EXPECT_EQ(share.next(false, false), std::nullopt);
}

}  // namespace
}  // namespace tinkxx::engine
