#include "observe/value_window.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace tinkxx::observe {
namespace {

ValueWindow window_of(std::vector<double> const& values) {
    ValueWindow window;
    for (auto const value : values) window.add(value);
    return window;
}

TEST(ValueWindow, GivesTheMiddleValueOrTheMeanOfTheTwoMiddleOnes) {  // R-EXT-10
    EXPECT_EQ(window_of({7}).ranks().p50, 7);
    EXPECT_EQ(window_of({9, 1, 5}).ranks().p50, 5);
    EXPECT_EQ(window_of({4, 1, 9, 2}).ranks().p50, 3);
}

TEST(ValueWindow, GivesOtherRanksByTheNearestValue) {  // R-EXT-10
    std::vector<double> values;
    for (int i = 100; i >= 1; --i) values.push_back(i);
    EXPECT_EQ(window_of(values).ranks().p95, 95);
    EXPECT_EQ(window_of(values).ranks().p99, 99);
    EXPECT_EQ(window_of({1, 2, 3}).ranks().p95, 3);
    values.resize(20);  // 100 … 81
    EXPECT_EQ(window_of(values).ranks().p95, 99);
    EXPECT_EQ(window_of(values).ranks().p99, 100);
}

TEST(ValueWindow, KeepsTheNewestThousand) {  // R-EXT-10
    ValueWindow window;
    for (int i = 1; i <= 2500; ++i) window.add(i);
    EXPECT_EQ(window.ranks().p50, 2000.5);  // of 1501 … 2500
    EXPECT_EQ(window.ranks().p95, 2450);
    EXPECT_EQ(window.ranks().p99, 2490);
    window.clear();
    EXPECT_EQ(window.ranks().p50, 0);
    window.add(3);
    EXPECT_EQ(window.ranks().p99, 3);
}

RC_GTEST_PROP(ValueWindowProperty, RanksAreThoseOfTheNewestValues, ()) {  // R-EXT-10
    auto const count = *rc::gen::inRange<std::size_t>(1, 2500);
    auto const values = *rc::gen::container<std::vector<int>>(count, rc::gen::inRange(-1000, 1000));
    ValueWindow window;
    for (auto const value : values) window.add(value);
    auto newest = values;
    if (newest.size() > ValueWindow::most) {
        newest.erase(newest.begin(), newest.end() - static_cast<std::ptrdiff_t>(ValueWindow::most));
    }
    std::ranges::sort(newest);
    auto const ranks = window.ranks();
    for (auto const& [percent, got] : {std::pair{95, ranks.p95}, std::pair{99, ranks.p99}}) {
        // The least value that at least so many of a hundred do not exceed.
        auto const expected = *std::ranges::find_if(newest, [&, percent = percent](int value) {
            auto const not_above = std::ranges::upper_bound(newest, value) - newest.begin();
            return not_above * 100 >= static_cast<std::ptrdiff_t>(newest.size()) * percent;
        });
        RC_ASSERT(got == expected);
    }
}

}  // namespace
}  // namespace tinkxx::observe
