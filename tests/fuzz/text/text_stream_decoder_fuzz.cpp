// Ids in portions of any size: the parts are UTF-8 each, and together what decoding at once gives.
#include <tinkxx/error.hpp>
#include <tinkxx/text/tokenizer.hpp>

#include "fuzz/text/support_tokenizers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace tinkxx;

void check_part(std::string const& part, text::TextTokenizer const& tokenizer) {
    (void)tokenizer.encode(part);  // refuses what is not UTF-8
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    if (size == 0) return 0;
    std::size_t const portion = 1 + data[0] % 5;
    std::vector<Token> tokens;
    for (std::size_t at = 1; at + 2 <= size; at += 2) {
        tokens.push_back(data[at] + ((data[at + 1] & 1) << 8));
    }
    for (auto const& tokenizer : fuzz::tokenizers()) {
        for (bool const skip : {false, true}) {
            text::DecodeOptions const options{.skip_special = skip};
            auto decoder = tokenizer.stream_decoder(options);
            std::string all;
            std::span<Token const> rest = tokens;
            while (!rest.empty()) {
                auto const part = decoder.push(rest.first(std::min(portion, rest.size())));
                check_part(part, tokenizer);
                all += part;
                rest = rest.subspan(std::min(portion, rest.size()));
            }
            all += decoder.finish();
            if (all != tokenizer.decode(tokens, options)) std::abort();
        }
    }
    return 0;
}
