// A tokenizer.json from somebody else, and what lies beside it.
#include <tinkxx/error.hpp>
#include <tinkxx/text/tokenizer.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace tinkxx;
    std::string_view const bytes{reinterpret_cast<char const*>(data), size};
    try {
        auto const tokenizer = text::TextTokenizer::from_json(bytes);
        // What was accepted can be used: no id lies beyond the limit, and all of them decode.
        auto const tokens = tokenizer.encode("Hello \xc3\xa9\xe4\xb8\xad\n  <s> 12 it's");
        for (auto const token : tokens) {
            if (token < 0 || static_cast<std::size_t>(token) >= tokenizer.id_limit()) std::abort();
        }
        (void)tokenizer.decode(tokens);
        if (tokenizer.count("a b") != tokenizer.encode("a b").size()) std::abort();
    } catch (ValidationError const& error) {
        if (error.what()[0] == '\0') std::abort();
    }
    return 0;
}
