#include "commands/text/render.hpp"

#include "commands/text/json_lines.hpp"
#include "frame/values.hpp"

#include <tinkxx/error.hpp>
#include <tinkxx/text/chat_template.hpp>
#include <tinkxx/text/render_tokenizer.hpp>
#include <tinkxx/text/renderer.hpp>

#include <charconv>
#include <chrono>
#include <ctime>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace tinkxx::cli {

namespace {

constexpr char const* about_render =
    "Turns conversations into the tokens that a model was trained with, and shows what of them\n"
    "counts in the loss. Reads one conversation from stdin, or with --jsonl one in each line: a\n"
    "JSON list of messages, or an object with messages, tools and variables of the template.";

constexpr char const* render_examples =
    "Examples:\n"
    "  echo "
    "'[{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":\"Hello!\"}]' |\n"
    "    tinkxx render --tokenizer models/Qwen3-8B --renderer qwen3\n"
    "  tinkxx render --tokenizer models/Qwen3-8B --renderer qwen3 --jsonl <chats.jsonl\n"
    "  tinkxx render --tokenizer models/Qwen3-8B --template --prompt --jsonl <chats.jsonl\n\n"
    "With --jsonl each line of stdout is {\"tokens\":[...],\"weights\":[...]}, with --prompt\n"
    "{\"tokens\":[...]}, and with --template a JSON string.\n\n"
    "Exit codes: as of tinkxx tokenize.";

void add_render_options(CLI::App& app, RenderArguments& to) {
    add_tokenizer(app, to.tokenizer);
    auto* const renderer =
        app.add_option("--renderer", to.renderer, "Such as qwen3, llama3 or role_colon")
            ->type_name("NAME")
            ->check(not_empty());
    auto* const with_template = app.add_flag(
        "--template", to.use_template, "The chat template of the folder instead: text, no tokens");
    with_template->excludes(renderer);
    auto* const how = app.add_option_group("how");
    how->add_options(renderer, with_template);
    how->require_option(1);
    auto* const prompt = app.add_flag(
        "--prompt", to.prompt, "What the model is given to answer, in place of what it learns");
    app.add_flag("--jsonl", to.jsonl, "A conversation in each line; JSON out");
    app.add_option("--train-on", to.train_on,
                   "What counts in the loss: last_assistant_message, last_assistant_turn, "
                   "all_assistant_messages, all_messages, all_tokens, "
                   "all_user_and_system_messages or customized")
        ->type_name("WHAT")
        ->check(not_empty())
        ->excludes(prompt)
        ->excludes(with_template)
        ->capture_default_str();
    app.add_option("--date", to.date, "For prompts that tell it, as 2025-11-30; by default today")
        ->type_name("DATE")
        ->check(not_empty());
    add_threads(app, to.threads);
}

[[noreturn]] void refuse(std::string message) {
    Error{{.kind = ErrorKind::validation, .message = std::move(message)}}.raise();
}

/// One conversation as it was given: JSON texts.
struct Given {
    std::string_view messages{};
    std::string_view tools{};
    /// All other members, which templates can read.
    std::string variables{};
};

/// A list of messages, or an object with `messages`, `tools` and variables for the template.
Given given_in(std::string_view line) {
    auto const first = line.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos || line[first] != '{') return {.messages = line};
    Given given;
    for (auto const& [name, value] : json_members_of(line)) {
        if (name == "messages") {
            given.messages = value;
        } else if (name == "tools") {
            given.tools = value;
        } else {
            given.variables += given.variables.empty() ? "{" : ",";
            append_json(given.variables, name);
            (given.variables += ':') += value;
        }
    }
    if (!given.variables.empty()) given.variables += '}';
    if (given.messages.empty()) {
        refuse("the object has no messages; give a list of messages, or an object with messages");
    }
    return given;
}

/// 2025-11-30 at noon, or now; where the user is.
std::chrono::local_time<std::chrono::microseconds> local_now(std::string const& date) {
    using namespace std::chrono;
    auto const time = system_clock::to_time_t(system_clock::now());
    std::tm parts{};
    ::localtime_r(&time, &parts);
    auto day = year{parts.tm_year + 1900} / (parts.tm_mon + 1) / parts.tm_mday;
    auto clock = hours{parts.tm_hour} + minutes{parts.tm_min} + seconds{parts.tm_sec};
    if (!date.empty()) {
        int y = 0;
        unsigned m = 0;
        unsigned d = 0;
        std::from_chars(date.data(), date.data() + 4, y);
        std::from_chars(date.data() + 5, date.data() + 7, m);
        std::from_chars(date.data() + 8, date.data() + 10, d);
        day = year{y} / static_cast<int>(m) / static_cast<int>(d);
        clock = hours{12};
    }
    return local_days{day} + clock;
}

void check_date(std::string const& date) {
    constexpr std::string_view form = "0000-00-00";
    bool right = date.size() == form.size();
    for (std::size_t i = 0; right && i < form.size(); ++i) {
        right = form[i] == '-' ? date[i] == '-' : date[i] >= '0' && date[i] <= '9';
    }
    if (!date.empty() && !right) refuse("render: '" + date + "' is not a date; use 2025-11-30");
}

/// Through the folder's chat template, to text.
class TemplateRun {
public:
    TemplateRun(RenderArguments const& arguments, text::LoadedTokenizer const& loaded)
        : prompt_{arguments.prompt},
          template_{compile(loaded)},
          clock_{[date = arguments.date] { return local_now(date); }} {
        auto const add = [&](char const* name, std::string const& token) {
            if (!token.empty()) tokens_.emplace_back(name, token);
        };
        add("bos_token", loaded.config.named.bos);
        add("eos_token", loaded.config.named.eos);
        add("pad_token", loaded.config.named.pad);
        add("unk_token", loaded.config.unk);
    }

    [[nodiscard]] std::string operator()(std::string_view line) const {
        auto const given = given_in(line);
        return template_
            .render({.messages = given.messages,
                     .tools = given.tools,
                     .add_generation_prompt = prompt_,
                     .special_tokens = tokens_,
                     .variables = given.variables,
                     .clock = &clock_})
            .text;
    }

private:
    static text::ChatTemplate compile(text::LoadedTokenizer const& loaded) {
        if (!loaded.config.chat_template) {
            refuse("render: there is no chat_template beside " + loaded.files.tokenizer.string() +
                   "; name a folder with chat_template.jinja or a tokenizer_config.json that has "
                   "one, or use --renderer");
        }
        return text::ChatTemplate::from_source(*loaded.config.chat_template);
    }

    bool prompt_;
    text::ChatTemplate template_;
    text::ChatClock clock_;
    std::vector<std::pair<std::string, std::string>> tokens_{};
};

/// Through a renderer, to tokens.
class RendererRun {
public:
    RendererRun(RenderArguments const& arguments, text::LoadedTokenizer const& loaded)
        : prompt_{arguments.prompt},
          train_on_{text::read_train_on_what(arguments.train_on)},
          renderer_{text::Renderers{}.make(arguments.renderer,
                                           text::make_render_tokenizer(loaded.tokenizer),
                                           {.current_date = arguments.date})} {}

    /// Without weights for a prompt.
    [[nodiscard]] text::RenderedExample operator()(std::string_view line) const {
        auto const given = given_in(line);
        auto messages = text::read_messages(given.messages);
        if (!given.tools.empty() && given.tools != "null") {
            declare(text::read_tools(given.tools), messages);
        }
        if (prompt_) return {.tokens = renderer_->build_generation_prompt(messages)};
        return renderer_->build_supervised_example(messages, train_on_);
    }

    [[nodiscard]] text::RenderTokenizer const& tokenizer() const noexcept {
        return renderer_->tokenizer();
    }

private:
    /// Puts the declaration of the tools, with what the system says, before the conversation.
    void declare(std::vector<text::ToolSpec> const& tools,
                 std::vector<text::Message>& messages) const {
        std::string system;
        if (!messages.empty() && messages.front().role == "system") {
            system = text::get_text(messages.front());
            messages.erase(messages.begin());
        }
        auto prefix = renderer_->create_conversation_prefix_with_tools(tools, system);
        messages.insert(messages.begin(), prefix.begin(), prefix.end());
    }

    bool prompt_;
    text::TrainOnWhat train_on_;
    std::unique_ptr<text::Renderer> renderer_;
};

void append_example(std::string& to, text::RenderedExample const& example, bool prompt) {
    to += "{\"tokens\":";
    append_json(to, example.tokens);
    if (!prompt) {
        to += ",\"weights\":[";
        for (auto const weight : example.weights) {
            char digits[32];
            if (to.back() != '[') to += ',';
            to.append(digits, std::to_chars(std::begin(digits), std::end(digits), weight).ptr);
        }
        to += ']';
    }
    to += '}';
}

Exit render_all(RenderArguments const& arguments, Context& context, LineAnswer const& answer) {
    auto& terminal = context.terminal;
    auto const bad = answer_lines(context.in, terminal.out(), arguments.threads, answer);
    return bad ? complain_of_line(
                     *bad, R"(a list of messages in each line: [{"role":"user","content":"Hi"}])",
                     terminal)
               : Exit::success;
}

Exit render_by_template(RenderArguments const& arguments, text::LoadedTokenizer const& loaded,
                        Context& context) {
    auto& terminal = context.terminal;
    TemplateRun const run{arguments, loaded};
    if (!arguments.jsonl) {
        terminal.out() << printable(run(read_all(context.in)), terminal);
        return Exit::success;
    }
    return render_all(arguments, context, [&](std::string_view line, std::string& answer) {
        append_json(answer, run(line));
    });
}

}  // namespace

Exit render(RenderArguments const& arguments, Context& context) {
    auto& terminal = context.terminal;
    return guard("render", "the conversation cannot be rendered", terminal, [&] {
        check_date(arguments.date);
        auto const loaded = choose_tokenizer(arguments.tokenizer);
        if (arguments.use_template) return render_by_template(arguments, loaded, context);
        RendererRun const run{arguments, loaded};
        if (!arguments.jsonl) {
            auto example = run(read_all(context.in));
            if (arguments.prompt) example.weights.assign(example.tokens.size(), 0.0F);
            terminal.out() << text::show_example(example, run.tokenizer(),
                                                 {.ansi = terminal.colours_data(),
                                                  .token_bounds = terminal.colours_data()})
                           << '\n';
            return Exit::success;
        }
        return render_all(arguments, context, [&](std::string_view line, std::string& answer) {
            append_example(answer, run(line), arguments.prompt);
        });
    });
}

Command render_command() {
    return {.path = "render",
            .summary = "A conversation as the tokens that a model learns from",
            .about = about_render,
            .examples = render_examples,
            .declare = declare<RenderArguments>(&add_render_options, &render)};
}

}  // namespace tinkxx::cli
