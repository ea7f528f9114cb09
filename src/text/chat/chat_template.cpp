#include <tinkxx/text/chat_template.hpp>

#include "text/jinja/convert/json_text.hpp"
#include "text/jinja/program/machine.hpp"
#include "text/jinja/program/program.hpp"
#include "text/jinja/syntax/parser.hpp"
#include "text/jinja/syntax/resolver.hpp"
#include "text/jinja/values/failure.hpp"
#include "text/unicode/utf8.hpp"

#include <tinkxx/error.hpp>

#include <algorithm>
#include <array>

namespace tinkxx::text {

class ChatTemplate::Impl {
public:
    explicit Impl(ChatTemplateOptions const& given)
        : options{given}, program{std::max(given.max_memory_bytes, given.max_source_bytes)} {}

    ChatTemplateOptions options;
    jinja::Program program;
};

namespace {

using jinja::Failure;
using jinja::Value;

/// What `transformers` calls the reasoning of a message, the standard name first.
constexpr std::array<std::string_view, 3> reasoning_names{"reasoning_content", "thinking",
                                                          "reasoning"};

[[noreturn]] void fail_public(Failure const& failure) {
    ErrorDetails details{.kind = ErrorKind::validation};
    details.message = "chat template: ";
    if (failure.line() != 0) details.message += "line " + std::to_string(failure.line()) + ": ";
    details.message += failure.message();
    details.field = failure.kind() == Failure::Kind::raised ? "raise_exception" : "chat_template";
    details.value = failure.message();
    throw ValidationError{details};
}

/// The other names of a message's reasoning, beside the one that it has.
Value with_reasoning_names(jinja::Arena& arena, Value const& message) {
    auto const& dict = *message.dict;
    Value const* reasoning = nullptr;
    for (auto const name : reasoning_names) {
        auto const* const found = find(dict, name);
        if (reasoning == nullptr && found != nullptr && !found->is_none()) reasoning = found;
    }
    if (reasoning == nullptr) return message;
    auto* const entries = arena.array<jinja::DictData::Entry>(dict.size + 2U);
    entries[0] = {jinja::string_value(reasoning_names[1]), *reasoning};
    std::copy_n(dict.entries, dict.size, entries + 1);
    entries[dict.size + 1U] = {jinja::string_value(reasoning_names[0]), *reasoning};
    return make_dict(arena, entries, dict.size + 2U);
}

Value read_messages(jinja::Arena& arena, std::string_view json, bool alias_reasoning) {
    auto messages = jinja::read_json(arena, json, "messages");
    if (!messages.is(jinja::Kind::list)) {
        throw Failure{Failure::Kind::input, "messages must be a JSON array of objects"};
    }
    auto* const changed = arena.array<Value>(messages.size);
    for (std::uint32_t i = 0; i < messages.size; ++i) {
        auto const& message = messages.items[i];
        if (!message.is(jinja::Kind::dict)) {
            throw Failure{Failure::Kind::input,
                          "messages[" + std::to_string(i) + "] must be a JSON object"};
        }
        changed[i] = alias_reasoning ? with_reasoning_names(arena, message) : message;
    }
    messages.items = changed;
    return messages;
}

Value read_list(jinja::Arena& arena, std::string_view json, std::string_view what) {
    if (json.empty()) return jinja::none_value();
    auto const list = jinja::read_json(arena, json, what);
    if (!list.is(jinja::Kind::list) && !list.is_none()) {
        throw Failure{Failure::Kind::input, std::string{what} + " must be a JSON array"};
    }
    return list;
}

void set_variables(jinja::Machine& machine, jinja::Arena& arena, ChatInput const& input,
                   bool alias_reasoning) {
    for (auto const& [name, token] : input.special_tokens) {
        if (find_invalid_utf8(token) != token.size()) {
            throw Failure{Failure::Kind::input, name + " is not valid UTF-8"};
        }
        machine.set(name, jinja::string_value(token));
    }
    machine.set("messages", read_messages(arena, input.messages, alias_reasoning));
    machine.set("tools", read_list(arena, input.tools, "tools"));
    machine.set("documents", read_list(arena, input.documents, "documents"));
    machine.set("add_generation_prompt", jinja::boolean_value(input.add_generation_prompt));
    if (input.variables.empty()) return;
    auto const variables = jinja::read_json(arena, input.variables, "variables");
    if (!variables.is(jinja::Kind::dict)) {
        throw Failure{Failure::Kind::input, "variables must be a JSON object"};
    }
    for (std::uint32_t i = 0; i < variables.dict->size; ++i) {
        machine.set(variables.dict->entries[i].key.view(), variables.dict->entries[i].value);
    }
}

}  // namespace

ChatTemplate::ChatTemplate(std::shared_ptr<Impl const> impl) noexcept : impl_{std::move(impl)} {}

ChatTemplate ChatTemplate::from_source(std::string_view source) {
    return from_source(source, ChatTemplateOptions{});
}

ChatTemplate ChatTemplate::from_source(std::string_view source,
                                       ChatTemplateOptions const& options) {
    auto impl = std::make_shared<Impl>(options);
    try {
        if (source.size() > options.max_source_bytes) {
            jinja::fail_limit("the source has " + std::to_string(source.size()) +
                              " bytes, more than max_source_bytes (" +
                              std::to_string(options.max_source_bytes) + ")");
        }
        if (auto const bad = find_invalid_utf8(source); bad != source.size()) {
            throw Failure{Failure::Kind::syntax,
                          "the source is not valid UTF-8 (at byte " + std::to_string(bad) + ")"};
        }
        jinja::Parser parser{impl->program, source, options.max_nesting};
        impl->program.body = parser.parse();
        jinja::resolve(impl->program);
    } catch (Failure const& failure) {
        fail_public(failure);
    }
    return ChatTemplate{std::move(impl)};
}

RenderedChat ChatTemplate::render(ChatInput const& input) const {
    auto const& options = impl_->options;
    jinja::Arena arena{options.max_memory_bytes};
    try {
        jinja::Machine machine{impl_->program,
                               arena,
                               {.max_steps = options.max_steps,
                                .max_output = options.max_output_bytes,
                                .max_depth = options.max_depth,
                                .clock = input.clock}};
        set_variables(machine, arena, input, options.alias_reasoning);
        machine.run();
        RenderedChat rendered;
        for (auto const& [begin, end] : machine.generated()) {
            rendered.generated.push_back({begin, end});
        }
        rendered.text = machine.take_output();
        return rendered;
    } catch (Failure const& failure) {
        fail_public(failure);
    }
}

bool ChatTemplate::marks_generation() const noexcept { return impl_->program.has_generation; }

}  // namespace tinkxx::text
