#pragma once

#include <tinkxx/text/message.hpp>

#include "text/render/common/json.hpp"
#include "text/render/parse/parsing.hpp"

#include <cstdint>
#include <string>
#include <string_view>

/// Tool calls of Qwen3.5, Qwen3.8 and Nemotron: `<function=NAME>` with `<parameter=NAME>` within.
namespace tinkxx::text::render {

enum class XmlScalars : std::uint8_t {
    python,  ///< True, None
    json,    ///< true, null
};

[[nodiscard]] std::string xml_tool_call(ToolCall const& call, XmlScalars scalars);
/// Reads a whole block from <tool_call> to </tool_call>.
[[nodiscard]] ParsedCall parse_xml_call(std::string_view raw);
/// Replaces calls that were no JSON by what they are as XML.
void read_xml_calls(Message& message);

/// The declaration of tools, as JSON on a line each.
[[nodiscard]] std::string xml_tools_as_json(std::span<ToolSpec const> tools);
/// The declaration of tools, as XML.
[[nodiscard]] std::string xml_tools_as_xml(std::span<ToolSpec const> tools);

}  // namespace tinkxx::text::render
