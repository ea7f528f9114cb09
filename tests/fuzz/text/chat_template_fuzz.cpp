// Chat templates, which come with models from anybody, and conversations, which come from anybody
// else. The input is a template, a zero byte, and the messages.
#include <tinkxx/error.hpp>
#include <tinkxx/text/chat_template.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace tinkxx;
    std::string_view const input{reinterpret_cast<char const*>(data), size};
    auto const end = std::min(input.find('\0'), input.size());
    auto const messages = input.substr(std::min(end + 1, input.size()));
    constexpr std::string_view usual =
        R"([{"role": "user", "content": "a\nb"}, {"role": "assistant", "content": [{"type": "text"}],)"
        R"( "tool_calls": [{"function": {"name": "f", "arguments": {"x": [1, 2.5, null]}}}]}])";
    text::ChatClock const clock{[] { return text::LocalMoment{}; }};
    text::ChatInput const given{.messages = messages.empty() ? usual : messages,
                                .tools = R"([{"type": "function", "function": {"name": "f"}}])",
                                .add_generation_prompt = true,
                                .clock = &clock};
    text::ChatTemplateOptions const bounds{.max_steps = 50'000,
                                           .max_depth = 300,
                                           .max_output_bytes = std::size_t{1} << 20U,
                                           .max_memory_bytes = std::size_t{16} << 20U};
    try {
        auto const chat = text::ChatTemplate::from_source(input.substr(0, end), bounds);
        auto const made = chat.render(given);
        if (made.text.size() > bounds.max_output_bytes) std::abort();
        for (auto const& [begin, stop] : made.generated) {
            if (begin > stop) std::abort();
        }
        if (chat.render(given) != made) std::abort();
    } catch (ValidationError const&) {
        return 0;
    }
    return 0;
}
