#include "text/render/parse/xml_calls.hpp"

#include "text/errors/refuse.hpp"
#include "text/render/common/characters.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace tinkxx::text::render {

namespace {

constexpr std::string_view function_open = "<function=";
constexpr std::string_view function_close = "</function>";
constexpr std::string_view parameter_open = "<parameter=";
constexpr std::string_view parameter_close = "</parameter>";

std::string xml_argument(Json const& value, XmlScalars scalars) {
    if (value.is_string()) return value.text();
    if (scalars == XmlScalars::json || value.is_container()) return write_json(value);
    return to_text(value);
}

// Removes what a text begins with; false if it does not.
bool eat(std::string_view& text, std::string_view part) {
    if (!text.starts_with(part)) return false;
    text.remove_prefix(part.size());
    return true;
}

bool eat_end(std::string_view& text, std::string_view part) {
    if (!text.ends_with(part)) return false;
    text.remove_suffix(part.size());
    return true;
}

// A name up to `>`, on one line and not empty; `text` goes on behind it.
std::optional<std::string_view> eat_name(std::string_view& text) {
    auto const end = text.find_first_of(">\n");
    if (end == 0 || end == std::string_view::npos || text[end] != '>') return std::nullopt;
    auto const name = text.substr(0, end);
    text.remove_prefix(end + 1);
    return name;
}

struct XmlFunction {
    std::string_view name{};
    std::string_view body{};
};

std::optional<XmlFunction> xml_function(std::string_view raw) {
    auto text = strip(raw);
    if (!eat(text, "<tool_call>")) return std::nullopt;
    text = strip_left(text);
    if (!eat(text, function_open)) return std::nullopt;
    auto const name = eat_name(text);
    if (!name) return std::nullopt;
    text = strip_left(text);
    if (!eat_end(text, "</tool_call>")) return std::nullopt;
    text = strip_right(text);
    if (!eat_end(text, function_close)) return std::nullopt;
    return XmlFunction{*name, strip_right(text)};
}

struct XmlParameter {
    std::size_t begin{0};
    std::size_t end{0};
    std::string_view name{};
    std::string_view value{};
};

std::optional<XmlParameter> next_parameter(std::string_view body, std::size_t at) {
    for (auto begin = body.find(parameter_open, at); begin != std::string_view::npos;
         begin = body.find(parameter_open, begin + 1)) {
        auto rest = body.substr(begin + parameter_open.size());
        auto const name = eat_name(rest);
        if (!name) continue;
        rest = strip_left(rest);
        auto const close = rest.find(parameter_close);
        if (close == std::string_view::npos) return std::nullopt;
        auto const start = body.size() - rest.size();
        return XmlParameter{begin, start + close + parameter_close.size(), *name,
                            strip_right(rest.substr(0, close))};
    }
    return std::nullopt;
}

constexpr std::string_view xml_tools_before =
    "# Tools\n\nYou have access to the following functions:\n\n<tools>\n";
constexpr std::string_view xml_tools_after = R"(
</tools>

If you choose to call a function ONLY reply in the following format with NO suffix:

<tool_call>
<function=example_function_name>
<parameter=example_parameter_1>
value_1
</parameter>
<parameter=example_parameter_2>
This is the value for the second parameter
that can span
multiple lines
</parameter>
</function>
</tool_call>

<IMPORTANT>
Reminder:
- Function calls MUST follow the specified format: an inner <function=...></function> block must be nested within <tool_call></tool_call> XML tags
- Required parameters MUST be specified
- You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT after
- If there is no function call available, answer the question like normal with your current knowledge and do not tell the user about function calls
</IMPORTANT>)";

void add_tag(std::string& out, std::string_view name, std::string_view text) {
    out.append("<").append(name).append(">").append(text);
    out.append("</").append(name).append(">\n");
}

void add_others(std::string& out, Json const& object, std::span<std::string_view const> known) {
    for (auto const& [name, value] : object.members()) {
        if (std::ranges::find(known, name) != known.end()) continue;
        add_tag(out, name, value.is_container() ? write_json(value) : to_text(value));
    }
}

std::string stripped_text(Json const& value, std::string_view what) {
    if (value.is_string()) return std::string{strip(value.text())};
    refuse("create_conversation_prefix_with_tools", std::string{what}, write_json(value),
           "the " + std::string{what} + " of a tool is no string; give one");
}

void add_parameter(std::string& out, std::string const& name, Json const& fields) {
    constexpr std::array<std::string_view, 4> known{"name", "type", "description", "enum"};
    out += "<parameter>\n";
    add_tag(out, "name", name);
    if (auto const* type = fields.find("type")) add_tag(out, "type", to_text(*type));
    if (auto const* description = fields.find("description")) {
        add_tag(out, "description", stripped_text(*description, "description"));
    }
    if (auto const* values = fields.find("enum")) add_tag(out, "enum", write_json(*values));
    add_others(out, fields, known);
    out += "</parameter>\n";
}

std::string xml_tool(Json const& tool) {
    constexpr std::array<std::string_view, 3> known_of_schema{"type", "properties", "required"};
    constexpr std::array<std::string_view, 4> known{"type", "name", "description", "parameters"};
    std::string out = "<function>\n";
    add_tag(out, "name", member_text(tool, "name"));
    if (auto const* description = tool.find("description")) {
        auto const text = stripped_text(*description, "description");
        if (!text.empty()) add_tag(out, "description", text);
    }
    out += "<parameters>\n";
    if (auto const* schema = tool.find("parameters"); schema != nullptr && schema->is_object()) {
        if (auto const* properties = schema->find("properties")) {
            for (auto const& [name, fields] : properties->members()) {
                add_parameter(out, name, fields);
            }
        }
        add_others(out, *schema, known_of_schema);
        if (auto const* required = schema->find("required")) {
            add_tag(out, "required", write_json(*required));
        }
    }
    out += "</parameters>\n";
    add_others(out, tool, known);
    return out + "</function>";
}

template <class Write>
std::string declared(std::span<ToolSpec const> tools, Write const& write) {
    if (tools.empty()) return {};
    std::string out{xml_tools_before};
    for (auto const& tool : tools) {
        if (&tool != tools.data()) out += '\n';
        out += write(tool_json(tool));
    }
    return out + std::string{xml_tools_after};
}

}  // namespace

std::string xml_tool_call(ToolCall const& call, XmlScalars scalars) {
    auto out = "<tool_call>\n<function=" + call.name + ">\n";
    auto const arguments = call_members(call);
    for (auto const& [name, value] : arguments.members()) {
        out += "<parameter=" + name + ">\n" + xml_argument(value, scalars) + "\n</parameter>\n";
    }
    return out + "</function>\n</tool_call>";
}

ParsedCall parse_xml_call(std::string_view raw) {
    auto const broken = [raw](std::string_view error) {
        return UnparsedToolCall{std::string{raw}, std::string{error}};
    };
    auto const function = xml_function(raw);
    if (!function) return broken("Malformed Qwen3.5 tool call XML");
    auto const function_name = strip(function->name);
    if (function_name.empty()) return broken("Missing function name");
    auto arguments = Json::object();
    std::size_t at = 0;
    while (auto const parameter = next_parameter(function->body, at)) {
        if (!strip(function->body.substr(at, parameter->begin - at)).empty()) {
            return broken("Unexpected non-parameter content inside <function> block");
        }
        auto const name = strip(parameter->name);
        if (name.empty()) return broken("Empty parameter name");
        auto const text = strip(parameter->value, '\n');
        auto read = read_json(text);
        arguments.set(std::string{name},
                      read.value ? std::move(*read.value) : Json::string(std::string{text}));
        at = parameter->end;
    }
    if (!strip(function->body.substr(at)).empty()) {
        return broken("Unexpected trailing content inside <function> block");
    }
    return ToolCall{.name = std::string{function_name}, .arguments = write_json(arguments)};
}

void read_xml_calls(Message& message) {
    std::vector<ParsedCall> calls;
    for (auto& call : std::exchange(message.unparsed_tool_calls, {})) {
        if (call.error.starts_with(unterminated_block) || !contains(call.raw_text, function_open)) {
            calls.emplace_back(std::move(call));
        } else {
            calls.push_back(parse_xml_call(call.raw_text));
        }
    }
    put_calls(message, std::move(calls));
}

std::string xml_tools_as_json(std::span<ToolSpec const> tools) {
    return declared(tools, [](Json const& tool) { return write_json(tool); });
}

std::string xml_tools_as_xml(std::span<ToolSpec const> tools) { return declared(tools, xml_tool); }

}  // namespace tinkxx::text::render
