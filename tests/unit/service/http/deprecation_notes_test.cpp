#include "service/http/deprecation_notes.hpp"

#include <gtest/gtest.h>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;

TimePoint const start{10h};

TEST(DeprecationNotes, TellsEachTextOncePerHour) {  // R-RETRY-76
    DeprecationNotes notes;
    Headers const headers{{"x-deprecation-note", "use b"}};
    ASSERT_TRUE(notes.read(headers, start));
    EXPECT_FALSE(notes.read(headers, start + 59min));
    EXPECT_TRUE(notes.read({{"X-Deprecation-Note", "use c"}}, start + 59min));
    EXPECT_TRUE(notes.read(headers, start + 60min));
    EXPECT_FALSE(notes.read(headers, start + 61min));
}

TEST(DeprecationNotes, TakesTheLevelFromTheServer) {  // R-RETRY-76
    DeprecationNotes notes;
    auto const plain = notes.read({{"x-deprecation-note", "a"}}, start);
    auto const grave =
        notes.read({{"x-deprecation-note", "b"}, {"x-deprecation-level", " Error "}}, start);
    auto const other =
        notes.read({{"x-deprecation-note", "c"}, {"x-deprecation-level", "info"}}, start);
    EXPECT_EQ(plain->level, LogLevel::warning);
    EXPECT_EQ(grave->level, LogLevel::error);
    EXPECT_EQ(grave->text, "b");
    EXPECT_EQ(other->level, LogLevel::warning);
}

TEST(DeprecationNotes, SaysNothingWithoutANote) {  // R-RETRY-76
    DeprecationNotes notes;
    EXPECT_FALSE(notes.read({}, start));
    EXPECT_FALSE(notes.read({{"x-deprecation-note", ""}}, start));
}

TEST(DeprecationNotes, RemembersABoundedNumberOfTexts) {
    DeprecationNotes notes;
    for (std::size_t i = 0; i < DeprecationNotes::capacity; ++i) {
        EXPECT_TRUE(notes.read({{"x-deprecation-note", std::to_string(i)}}, start));
    }
    EXPECT_FALSE(notes.read({{"x-deprecation-note", "one more"}}, start + 1min));
    EXPECT_TRUE(notes.read({{"x-deprecation-note", "one more"}}, start + 1h));
}

}  // namespace
}  // namespace tinkxx::service
