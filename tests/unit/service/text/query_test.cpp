#include "service/text/query.hpp"

#include <gtest/gtest.h>

namespace tinkxx::service {
namespace {

TEST(Query, IsFormEncoded) {  // R-EXT-90
    EXPECT_EQ(query_string({{"a", "x y"}, {"t", "2026-07-13T00:00:00Z"}}),
              "a=x+y&t=2026-07-13T00%3A00%3A00Z");
    EXPECT_EQ(query_string({{"~", "-._~*'()!"}}), "~=-._~%2A%27%28%29%21");
}

TEST(Query, LeavesOutNullAndEmptyText) {  // R-CONF-06, R-EXT-90
    EXPECT_EQ(query_string({{"a", nullptr}, {"b", ""}, {"c", false}}), "c=false");
}

TEST(Query, PrintsNumbersListsAndParts) {
    EXPECT_EQ(query_string({{"i", 20}, {"d", 1.5}, {"w", 2.0}, {"big", 1e20}}),
              "i=20&d=1.5&w=2.0&big=1e%2B20");
    EXPECT_EQ(query_string({{"l", QueryValue::List{1, nullptr, true}}, {"e", QueryValue::List{}}}),
              "l=1%2Ctrue&e=");
    EXPECT_EQ(
        query_string({{"f", QueryValue::Parts{{"g", 1}, {"h", QueryValue::Parts{{"i", "j"}}}}}}),
        "f%5Bg%5D=1&f%5Bh%5D%5Bi%5D=j");
}

TEST(Query, DefaultsYieldToThePathAndThePathToTheRequest) {  // R-EXT-90
    EXPECT_EQ(merged_query({{"a", 1}, {"b", 1}, {"c", 1}}, "b=2&d=2", {{"c", 3}, {"d", 3}}),
              "a=1&b=2&c=3&d=3");
    EXPECT_EQ(merged_query({}, "b=2&b=x%20y", {}), "b=2&b=x%20y");
    EXPECT_EQ(merged_query({}, "f%5Bg%5D=1", {{"f", QueryValue::Parts{{"g", 2}}}}), "f%5Bg%5D=2");
    EXPECT_EQ(merged_query({}, "", {}), "");
}

}  // namespace
}  // namespace tinkxx::service
