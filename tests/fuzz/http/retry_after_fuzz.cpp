// Headers that ask for a wait: the first line is retry-after-ms, the rest retry-after.
#include "service/text/retry_after.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace tinkxx;
    std::string const text(reinterpret_cast<char const*>(data), size);
    auto const end = text.find('\n');
    Headers headers;
    headers.add("retry-after-ms", text.substr(0, end));
    if (end != std::string::npos) headers.add("retry-after", text.substr(end + 1));
    WallTime const now{std::chrono::seconds{1'800'000'000}};
    auto const wait = service::retry_after(headers, now, service::longest_retry_after);
    if (wait && (wait->count() <= 0 || *wait > service::longest_retry_after)) std::abort();
    return 0;
}
