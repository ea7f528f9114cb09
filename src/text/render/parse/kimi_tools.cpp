#include "text/render/parse/kimi_tools.hpp"

#include "text/errors/refuse.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <span>
#include <string_view>
#include <utility>

namespace tinkxx::text::render {

namespace {

constexpr std::size_t deepest_schema = 64;

[[noreturn]] void refuse_schema(Json const& value, std::string_view why) {
    refuse("create_conversation_prefix_with_tools", "parameters", write_json(value),
           "the schema of a tool's parameters " + std::string{why});
}

// A comment of as many lines as the text has; empty lines stay empty.
std::string comment(std::string_view text, std::string_view indent) {
    std::string out;
    while (true) {
        auto const end = text.find('\n');
        auto const line = text.substr(0, end);
        if (!line.empty()) out.append(indent).append("// ").append(line);
        if (end == std::string_view::npos) return out;
        out += '\n';
        text.remove_prefix(end + 1);
    }
}

// Writes one function. Definitions it finds are written behind it as interfaces of their own.
class KimiFunction {
public:
    explicit KimiFunction(Json const& function) : function_{function} {}

    std::string write() {
        auto const* parameters = function_.find("parameters");
        auto const root =
            parameters == nullptr || !parameters->truthy() ? Json::object() : *parameters;
        collect(root, 0);
        auto const* name = function_.find("name");
        auto const shown = name == nullptr ? std::string{"function"} : to_text(*name);
        std::vector<std::string> lines;
        if (self_reference_) lines.push_back(root_interface(root));
        for (auto const& [defined, schema] : definitions_) {
            lines.push_back(interface(defined, schema));
        }
        auto const* description = function_.find("description");
        if (description != nullptr && description->truthy()) {
            auto text = comment(to_text(*description), "");
            if (!text.empty()) lines.push_back(std::move(text));
        }
        lines.push_back("type " + shown + " = (_: " +
                        (self_reference_ ? std::string{"parameters"} : object(root, "", 0)) +
                        ") => any;");
        std::string out;
        for (auto const& line : lines) out += (&line == lines.data() ? "" : "\n") + line;
        return out;
    }

private:
    // Looks at every schema in the order in which they are read, for definitions and references.
    void collect(Json const& schema, std::size_t depth);
    void collect_object(Json const& schema, std::size_t depth);
    void collect_reference(Json const& schema);

    [[nodiscard]] std::string type(Json const& schema, std::string const& indent,
                                   std::size_t depth) const;
    [[nodiscard]] std::string object(Json const& schema, std::string const& indent,
                                     std::size_t depth) const;
    [[nodiscard]] std::string array(Json const& schema, std::string const& indent,
                                    std::size_t depth) const;
    [[nodiscard]] std::string parameter(std::string const& name, Json const& schema, bool optional,
                                        std::string const& indent, std::size_t depth) const;
    [[nodiscard]] std::string docstring(Json const& schema, std::string const& indent) const;
    [[nodiscard]] std::string root_interface(Json const& root) const;
    [[nodiscard]] std::string interface(std::string const& name, Json const& schema) const;

    Json const& function_;
    bool self_reference_{false};
    std::vector<std::pair<std::string, Json>> definitions_{};
};

enum class SchemaKind { scalar, object, array, any_of, values, union_of, reference };

SchemaKind kind_of(Json const& schema) {
    if (schema.kind() == Json::Kind::boolean) return SchemaKind::scalar;
    if (!schema.is_object()) refuse_schema(schema, "holds what is no schema; give an object");
    if (schema.find("$ref") != nullptr) return SchemaKind::reference;
    if (schema.find("anyOf") != nullptr) return SchemaKind::any_of;
    if (schema.find("enum") != nullptr) return SchemaKind::values;
    auto const* type = schema.find("type");
    if (type == nullptr) {
        if (schema.members().empty()) return SchemaKind::scalar;
        refuse_schema(schema, "has no type somewhere; give one");
    }
    if (type->is_array()) return SchemaKind::union_of;
    if (type->is_string() && type->text() == "object") return SchemaKind::object;
    if (type->is_string() && type->text() == "array") return SchemaKind::array;
    return SchemaKind::scalar;
}

std::vector<Json> const& list_of(Json const& schema, std::string_view name) {
    auto const* found = schema.find(name);
    if (found == nullptr || !found->is_array()) {
        refuse_schema(schema, "has no list in \"" + std::string{name} + "\"; give one");
    }
    return found->items();
}

// The values of an enumeration must be of its type.
void check_values(Json const& schema) {
    auto const* type = schema.find("type");
    auto const& values = list_of(schema, "enum");
    if (type == nullptr) return;
    auto name = type->is_string() ? type->text() : std::string{};
    if (type->is_array()) {
        auto const& types = type->items();
        auto const is_null = [](Json const& t) { return t.is_string() && t.text() == "null"; };
        if (types.empty() || types.size() > 2 ||
            (types.size() == 2 && std::ranges::none_of(types, is_null))) {
            refuse_schema(schema, "has an enumeration of several types; give it one");
        }
        auto const& named = types.size() == 2 && is_null(types[0]) ? types[1] : types[0];
        name = named.is_string() ? named.text() : std::string{};
    }
    for (auto const& value : values) {
        auto const kind = value.kind();
        if (kind == Json::Kind::null) continue;
        // Truth values are numbers there.
        auto const whole = kind == Json::Kind::integer || kind == Json::Kind::boolean;
        auto const good = name == "string"    ? value.is_string()
                          : name == "number"  ? whole || kind == Json::Kind::real
                          : name == "integer" ? whole
                          : name == "boolean" ? kind == Json::Kind::boolean
                                              : true;
        if (!good) refuse_schema(schema, "has an enumeration with a value of another type");
    }
}

std::string last_segment(std::string const& reference) {
    auto const slash = reference.rfind('/');
    return slash == std::string::npos ? reference : reference.substr(slash + 1);
}

std::string union_text(Json const& schema) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 7> names{
        {{"string", "string"},
         {"number", "number"},
         {"integer", "number"},
         {"boolean", "boolean"},
         {"null", "null"},
         {"object", "{}"},
         {"array", "Array<any>"}}};
    std::string out;
    for (auto const& type : list_of(schema, "type")) {
        auto const found = std::ranges::find_if(names, [&type](auto const& name) {
            return type.is_string() && name.first == type.text();
        });
        if (found == names.end()) refuse_schema(schema, "has an unknown type in a union");
        out += (out.empty() ? "" : " | ") + std::string{found->second};
    }
    return out;
}

std::string values_text(Json const& schema) {
    std::string out;
    auto const& values = list_of(schema, "enum");
    for (auto const& value : values) {
        if (&value != values.data()) out += " | ";
        out += value.is_string() ? "\"" + value.text() + "\"" : to_text(value);
    }
    return out;
}

std::string scalar_text(Json const& schema) {
    if (schema.is(true)) return "any";
    if (schema.is(false)) return "null";
    auto const* type = schema.find("type");
    if (type == nullptr) return "any";
    if (!type->is_string()) refuse_schema(schema, "has a type that is no name");
    return type->text() == "integer" ? "number" : type->text();
}

std::span<std::string_view const> constraints_of(Json const& schema) {
    static constexpr std::array<std::string_view, 3> of_text{"maxLength", "minLength", "pattern"};
    static constexpr std::array<std::string_view, 2> of_number{"maximum", "minimum"};
    static constexpr std::array<std::string_view, 2> of_array{"maxItems", "minItems"};
    auto const kind = kind_of(schema);
    if (kind == SchemaKind::array) return of_array;
    if (kind != SchemaKind::scalar) return {};
    auto const* type = schema.find("type");
    if (type == nullptr || !type->is_string()) return {};
    if (type->text() == "string") return of_text;
    if (type->text() == "number" || type->text() == "integer") return of_number;
    return {};
}

void KimiFunction::collect_reference(Json const& schema) {
    auto const* reference = schema.find("$ref");
    if (!reference->is_string()) refuse_schema(schema, "has a reference that is no string");
    auto const& text = reference->text();
    if (text == "#") {
        self_reference_ = true;
        return;
    }
    if (!text.starts_with("#/$defs/")) {
        refuse_schema(schema, "has a reference to elsewhere; use # or #/$defs/NAME");
    }
    auto const name = last_segment(text);
    auto const defined = [&name](auto const& definition) { return definition.first == name; };
    if (std::ranges::none_of(definitions_, defined)) {
        refuse_schema(schema, "has a reference to what is not defined in $defs");
    }
}

void KimiFunction::collect_object(Json const& schema, std::size_t depth) {
    if (auto const* defined = schema.find("$defs")) {
        for (auto const& [name, definition] : defined->members()) {
            auto const found =
                std::ranges::find(definitions_, name, &std::pair<std::string, Json>::first);
            if (found == definitions_.end()) {
                definitions_.emplace_back(name, definition);
            } else {
                found->second = definition;
            }
        }
    }
    if (auto const* more = schema.find("additionalProperties"); more != nullptr) {
        if (more->is_object()) collect(*more, depth + 1);
    }
    if (auto const* properties = schema.find("properties")) {
        for (auto const& property : properties->members()) collect(property.second, depth + 1);
    }
}

void KimiFunction::collect(Json const& schema, std::size_t depth) {
    if (depth > deepest_schema) refuse_schema(Json{}, "is nested too deeply; flatten it");
    if (depth == 0) return collect_object(schema, depth);
    switch (kind_of(schema)) {
        case SchemaKind::object:
            return collect_object(schema, depth);
        case SchemaKind::array:
            if (auto const* items = schema.find("items"); items != nullptr && items->truthy()) {
                collect(*items, depth + 1);
            }
            return;
        case SchemaKind::any_of:
            for (auto const& one : list_of(schema, "anyOf")) collect(one, depth + 1);
            return;
        case SchemaKind::values:
            return check_values(schema);
        case SchemaKind::reference:
            return collect_reference(schema);
        case SchemaKind::scalar:
        case SchemaKind::union_of:
            return;
    }
}

std::string KimiFunction::docstring(Json const& schema, std::string const& indent) const {
    if (!schema.is_object()) return {};
    std::string out;
    auto const* description = schema.find("description");
    if (description != nullptr && description->truthy()) {
        out += comment(to_text(*description), indent) + "\n";
    }
    std::string limits;
    for (auto const name : constraints_of(schema)) {
        auto const* value = schema.find(name);
        if (value == nullptr) continue;
        limits += (limits.empty() ? "" : ", ") + std::string{name} + ": " + to_text(*value);
    }
    if (!limits.empty()) out += indent + "// " + limits + "\n";
    return out;
}

std::string KimiFunction::type(Json const& schema, std::string const& indent,
                               std::size_t depth) const {
    if (depth > deepest_schema) refuse_schema(Json{}, "is nested too deeply; flatten it");
    switch (kind_of(schema)) {
        case SchemaKind::scalar:
            return scalar_text(schema);
        case SchemaKind::object:
            return object(schema, indent, depth);
        case SchemaKind::array:
            return array(schema, indent, depth);
        case SchemaKind::values:
            return values_text(schema);
        case SchemaKind::union_of:
            return union_text(schema);
        case SchemaKind::reference: {
            auto const& reference = schema.find("$ref")->text();
            return reference == "#" ? "parameters" : last_segment(reference);
        }
        case SchemaKind::any_of: {
            std::string out;
            auto const& types = list_of(schema, "anyOf");
            for (auto const& one : types) {
                out += (&one == types.data() ? "" : " | ") + type(one, indent, depth + 1);
            }
            return out;
        }
    }
    return "any";
}

std::string KimiFunction::array(Json const& schema, std::string const& indent,
                                std::size_t depth) const {
    auto const* items = schema.find("items");
    if (items == nullptr || !items->truthy()) return "Array<any>";
    auto const inner = indent + "  ";
    auto const doc = docstring(*items, inner);
    if (doc.empty()) return "Array<" + type(*items, indent, depth + 1) + ">";
    return "Array<\n" + doc + inner + type(*items, inner, depth + 1) + "\n" + indent + ">";
}

std::string KimiFunction::parameter(std::string const& name, Json const& schema, bool optional,
                                    std::string const& indent, std::size_t depth) const {
    auto out = docstring(schema, indent);
    auto const* standard = schema.is_object() ? schema.find("default") : nullptr;
    if (standard != nullptr && standard->kind() != Json::Kind::null) {
        auto const number = standard->kind() == Json::Kind::boolean ||
                            standard->kind() == Json::Kind::integer ||
                            standard->kind() == Json::Kind::real;
        out += indent + "// Default: " +
               (number ? to_repr(*standard) : write_json(*standard, {.ascii = false})) + "\n";
    }
    return out + indent + name + (optional ? "?: " : ": ") + type(schema, indent, depth + 1);
}

std::string KimiFunction::object(Json const& schema, std::string const& indent,
                                 std::size_t depth) const {
    auto const inner = indent + "  ";
    std::map<std::string, Json const*> needed;
    std::map<std::string, Json const*> optional;
    auto const* required = schema.find("required");
    if (auto const* properties = schema.find("properties")) {
        for (auto const& [name, property] : properties->members()) {
            auto const is_name = [&name = name](Json const& one) {
                return one.is_string() && one.text() == name;
            };
            auto const needs =
                required != nullptr && std::ranges::any_of(required->items(), is_name);
            (needs ? needed : optional).emplace(name, &property);
        }
    }
    std::string out;
    auto const add = [&out](std::string const& one) { out += (out.empty() ? "" : ",\n") + one; };
    for (auto const& [name, property] : needed) {
        add(parameter(name, *property, false, inner, depth));
    }
    for (auto const& [name, property] : optional) {
        add(parameter(name, *property, true, inner, depth));
    }
    auto const* more = schema.find("additionalProperties");
    if (more != nullptr && more->kind() != Json::Kind::null) {
        if (!more->is_object() && more->kind() != Json::Kind::boolean) {
            refuse_schema(*more, "has additionalProperties that are no schema");
        }
        add(inner + "[k: string]: " +
            (more->is(true)    ? "any"
             : more->is(false) ? "never"
                               : type(*more, inner, depth + 1)));
    }
    return out.empty() ? "{}" : "{\n" + out + "\n" + indent + "}";
}

// In the order of the schema, unlike all other objects.
std::string KimiFunction::root_interface(Json const& root) const {
    std::string out;
    auto const* required = root.find("required");
    if (auto const* properties = root.find("properties")) {
        for (auto const& [name, property] : properties->members()) {
            auto const is_name = [&name = name](Json const& one) {
                return one.is_string() && one.text() == name;
            };
            auto const needs =
                required != nullptr && std::ranges::any_of(required->items(), is_name);
            out += (out.empty() ? "" : ",\n") + parameter(name, property, !needs, "  ", 0);
        }
    }
    return "interface parameters {" + (out.empty() ? "" : "\n" + out + "\n") + "}";
}

std::string KimiFunction::interface(std::string const& name, Json const& schema) const {
    auto const* description = schema.find("description");
    auto const has = description != nullptr && description->truthy();
    return (has ? comment(to_text(*description), "") + "\n" : "") + "interface " + name + " " +
           type(schema, "", 0);
}

}  // namespace

std::string kimi_typescript(std::vector<Json> const& functions) {
    std::string out;
    for (auto const& function : functions) {
        if (!function.truthy()) continue;
        out += KimiFunction{function}.write() + "\n";
    }
    if (out.empty()) return {};
    return "# Tools\n\n## functions\nnamespace functions {\n" + out + "}\n";
}

}  // namespace tinkxx::text::render
