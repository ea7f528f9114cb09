#include <tinkxx/transport.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx {
namespace {

TEST(Headers, FindsNamesInAnyCase) {
    Headers const headers{{"Content-Type", "text/plain"}, {"X-A", "1"}, {"x-a", "2"}};

    ASSERT_NE(headers.find("content-type"), nullptr);
    EXPECT_EQ(*headers.find("CONTENT-TYPE"), "text/plain");
    EXPECT_EQ(*headers.find("X-a"), "1");
    EXPECT_EQ(headers.find("Content"), nullptr);
    EXPECT_FALSE(headers.contains("content_type"));
}

TEST(Headers, SetLeavesOneLineInThePlaceOfTheFirst) {
    Headers headers{{"A", "1"}, {"B", "2"}, {"a", "3"}};
    headers.set("a", "4");
    EXPECT_EQ(headers, (Headers{{"A", "4"}, {"B", "2"}}));

    headers.set("C", "5");
    EXPECT_EQ(headers.size(), 3U);
    headers.add("b", "6");
    headers.remove("B");
    EXPECT_EQ(headers, (Headers{{"A", "4"}, {"C", "5"}}));
}

TEST(FailureKind, KnowsItsTimeouts) {
    EXPECT_TRUE(is_timeout(FailureKind::connect_timeout));
    EXPECT_TRUE(is_timeout(FailureKind::total_timeout));
    EXPECT_FALSE(is_timeout(FailureKind::reset));
    EXPECT_FALSE(is_timeout(FailureKind::closed));
}

TEST(FailureKind, NamesItself) {
    EXPECT_EQ(to_string(FailureKind::pool_timeout), "pool_timeout");
    EXPECT_EQ(to_string(Purpose::completion_poll), "completion_poll");
    EXPECT_EQ(to_string(Seen::partly), "partly");
}

TEST(Purpose, EachHasANameOfItsOwn) {
    std::set<std::string_view> names;
    for (std::size_t i = 0; i != purpose_count; ++i) {
        names.insert(to_string(static_cast<Purpose>(i)));
    }
    EXPECT_EQ(names, (std::set<std::string_view>{"session", "sample", "train", "rest", "retrieve",
                                                 "completion_poll", "telemetry", "auth"}));
}

}  // namespace
}  // namespace tinkxx
