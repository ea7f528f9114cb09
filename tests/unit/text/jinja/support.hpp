#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/text/chat_template.hpp>

#include <chrono>
#include <string>
#include <string_view>

namespace tinkxx::text::testing {

/// The text that a template gives for variables, which are a JSON object, and no messages.
inline std::string rendered(std::string_view source, std::string_view variables = "{}") {
    return ChatTemplate::from_source(source)
        .render({.messages = "[]", .variables = variables})
        .text;
}

/// What the error says, or "no error".
inline std::string refusal(std::string_view source, std::string_view variables = "{}",
                           ChatTemplateOptions const& options = ChatTemplateOptions{}) {
    try {
        (void)ChatTemplate::from_source(source, options)
            .render({.messages = "[]", .variables = variables});
    } catch (ValidationError const& e) {
        return e.what();
    }
    return "no error";
}

}  // namespace tinkxx::text::testing
