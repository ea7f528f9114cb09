// Any ids: decoding them gives UTF-8, at once and one by one the same.
#include <tinkxx/error.hpp>
#include <tinkxx/text/tokenizer.hpp>

#include "fuzz/text/support_tokenizers.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using namespace tinkxx;

/// Two bytes for an id in most cases, four for those beyond all vocabularies.
std::vector<Token> tokens_of(std::uint8_t const* data, std::size_t size) {
    std::vector<Token> tokens;
    for (std::size_t at = 0; at + 2 <= size; at += 2) {
        Token token = data[at] + ((data[at + 1] & 1) << 8);
        if (data[at + 1] == 0xff && at + 6 <= size) {
            std::memcpy(&token, data + at + 2, sizeof token);
            at += 4;
        }
        tokens.push_back(token);
    }
    return tokens;
}

bool is_utf8(std::string const& bytes, text::TextTokenizer const& tokenizer) {
    try {
        (void)tokenizer.encode(bytes);
        return true;
    } catch (ValidationError const&) {
        return false;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const tokens = tokens_of(data, size);
    for (auto const& tokenizer : fuzz::tokenizers()) {
        for (bool const skip : {false, true}) {
            auto const whole = tokenizer.decode(tokens, text::DecodeOptions{.skip_special = skip});
            if (!is_utf8(whole, tokenizer)) std::abort();
        }
    }
    return 0;
}
