// Dates as servers write them.
#include "service/text/http_date.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace tinkxx;
    std::string_view const text{reinterpret_cast<char const*>(data), size};
    WallTime const now{std::chrono::seconds{1'800'000'000}};
    auto const date = service::parse_http_date(text, now);
    // A date has years of four digits at most, and nothing before the year 1700 is read.
    if (date && *date < WallTime{std::chrono::seconds{-8'520'422'400}}) std::abort();
    return 0;
}
