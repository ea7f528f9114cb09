// Compressed bodies. The first byte picks the encoding, the second the size of the pieces.
#include "net/http/content_decoder.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

void require(bool good) {
    if (!good) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using tinkxx::net::ContentDecoder;
    constexpr std::array<std::string_view, 6> encodings{
        "gzip", "deflate", "zstd", "gzip, zstd", "zstd, gzip", "deflate,deflate,deflate"};
    constexpr std::size_t most_output = std::size_t{16} * 1024 * 1024;  // the caller's own limit
    if (size < 2) return 0;
    bool known = false;
    auto const decoder =
        tinkxx::net::make_content_decoder(encodings[data[0] % encodings.size()], known);
    require(known && decoder != nullptr);
    std::size_t const chunk = std::size_t{1} + data[1];
    std::string_view rest{reinterpret_cast<char const*>(data) + 2, size - 2};
    std::size_t total = 0;
    while (!rest.empty()) {
        auto const part = rest.substr(0, chunk);
        rest.remove_prefix(part.size());
        std::vector<char> const bytes{part.begin(), part.end()};
        decoder->feed(bytes);
        for (;;) {
            auto const step = decoder->next();
            if (step == ContentDecoder::Step::need_input) break;
            if (step == ContentDecoder::Step::error) {
                require(!decoder->error_text().empty() && !decoder->complete());
                require(decoder->next() == ContentDecoder::Step::error);
                return 0;
            }
            auto const output = decoder->output();
            require(!output.empty() && output.size() <= std::size_t{64} * 1024);
            total += output.size();
            if (total > most_output) return 0;
        }
    }
    (void)decoder->complete();
    return 0;
}
