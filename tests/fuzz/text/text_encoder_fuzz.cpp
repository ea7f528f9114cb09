// Any bytes as a text: what is UTF-8 is encoded, and the rest refused or replaced.
#include <tinkxx/error.hpp>
#include <tinkxx/text/tokenizer.hpp>

#include "fuzz/text/support_tokenizers.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

using namespace tinkxx;

void expect(bool right) {
    if (!right) std::abort();
}

void check(text::TextTokenizer const& tokenizer, std::string_view bytes,
           text::EncodeOptions const& options) {
    auto const encoding = tokenizer.encode_with_offsets(bytes, options);
    expect(encoding.tokens == tokenizer.encode(bytes, options));
    expect(encoding.tokens.size() == tokenizer.count(bytes, options));
    expect(encoding.ranges.size() == encoding.tokens.size());
    for (auto const& [begin, end] : encoding.ranges) expect(begin <= end && end <= bytes.size());
    auto const whole = tokenizer.decode(encoding.tokens);
    auto decoder = tokenizer.stream_decoder();
    std::string parts;
    for (auto const token : encoding.tokens) parts += decoder.push(token);
    expect(parts + decoder.finish() == whole);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const bytes{reinterpret_cast<char const*>(data), size};
    for (auto const& tokenizer : fuzz::tokenizers()) {
        for (auto const special : {text::SpecialText::parse, text::SpecialText::as_text}) {
            check(tokenizer, bytes,
                  {.special_text = special, .invalid_utf8 = text::InvalidUtf8::replace});
            try {
                check(tokenizer, bytes, {.special_text = special});
            } catch (ValidationError const&) {
            }
        }
    }
    return 0;
}
