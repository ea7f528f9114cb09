#include "net/stream/descriptors.hpp"

#include <gmock/gmock.h>

#include <cerrno>

namespace tinkxx::net {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(Descriptors, KnowsAShortageByItsErrors) {
    EXPECT_TRUE(is_descriptor_shortage(EMFILE));
    EXPECT_TRUE(is_descriptor_shortage(ENFILE));
    EXPECT_FALSE(is_descriptor_shortage(ECONNREFUSED));
    EXPECT_FALSE(is_descriptor_shortage(0));
    EXPECT_FALSE(descriptors_are_short());
}

TEST(Descriptors, TellsOfAShortageAtOnceAndThenOnceAMinute) {
    ShortageNote note;
    TimePoint const start{1h};
    auto const first = note.line("cannot connect to host:80", start);
    ASSERT_TRUE(first);
    EXPECT_THAT(*first, HasSubstr("out of file descriptors: cannot connect to host:80"));
    EXPECT_THAT(*first, HasSubstr("ulimit -n"));
    EXPECT_FALSE(note.line("again", start));
    EXPECT_FALSE(note.line("again", start + 59s));
    EXPECT_TRUE(note.line("again", start + 60s));
}

}  // namespace
}  // namespace tinkxx::net
