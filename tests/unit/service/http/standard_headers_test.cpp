#include "service/http/standard_headers.hpp"

#include <tinkxx/version.hpp>

#include <gtest/gtest.h>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;

TEST(StandardHeaders, SayWhoAsks) {  // R-WIRE-01, C-63
    auto const headers = standard_headers("0.36.0");
    EXPECT_EQ(*headers.find("accept"), "application/json");
    EXPECT_EQ(*headers.find("user-agent"), "tinkxx/" TINKXX_VERSION);
    EXPECT_EQ(*headers.find("x-stainless-package-version"), "0.36.0");
    EXPECT_EQ(*headers.find("x-stainless-runtime"), "C++");
    EXPECT_FALSE(headers.find("x-stainless-runtime-version")->empty());
    EXPECT_FALSE(headers.find("x-stainless-os")->empty());
    EXPECT_FALSE(headers.find("x-stainless-arch")->empty());
    EXPECT_FALSE(headers.contains("x-api-key"));
    EXPECT_FALSE(headers.contains("x-stainless-async"));
}

TEST(StandardHeaders, PrintSecondsInTheShortestForm) {  // R-RETRY-73
    EXPECT_EQ(seconds_text(60s), "60");
    EXPECT_EQ(seconds_text(45s), "45");
    EXPECT_EQ(seconds_text(250ms), "0.25");
    EXPECT_EQ(seconds_text(1005ms), "1.005");
    EXPECT_EQ(seconds_text(0ms), "0");
}

}  // namespace
}  // namespace tinkxx::service
