#include "commands/sample/prompt.hpp"

#include "commands/manage/references.hpp"
#include "commands/text/json_lines.hpp"
#include "commands/text/text_command.hpp"
#include "frame/troubles.hpp"
#include "frame/values.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

namespace tinkxx::cli {
namespace {

/// Looks for the tokenizer that was named, whatever the model.
ClientOptions with_tokenizer(ClientOptions options, PromptArguments const& arguments) {
    if (arguments.tokenizer.empty()) return options;
    auto loaded = choose_tokenizer({.tokenizer = arguments.tokenizer});
    options.tokenizers = Tokenizers{
        [shared = std::make_shared<text::TextTokenizer const>(std::move(loaded.tokenizer))](
            TokenizerId const& /*id*/) { return shared; }};
    return options;
}

/// A checkpoint may be called as elsewhere on the command line.
std::string model_of(ServiceClient const& service, std::string const& given) {
    bool const of_a_run = given.find("/sampler_weights/") != std::string::npos ||
                          given.find("/weights/") != std::string::npos;
    if (given != "@latest" && !given.starts_with("tinker://") && !of_a_run) return given;
    return checkpoint_of(service.create_rest_client(), given);
}

std::string content_of(std::string const& path) {
    int const file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        throw BadUsage{path + " cannot be read: " + std::generic_category().message(errno)};
    }
    try {
        auto text = read_all(file);
        ::close(file);
        return text;
    } catch (std::system_error const& error) {
        ::close(file);
        throw BadUsage{path + " cannot be read: " + error.code().message()};
    }
}

}  // namespace

std::vector<Token> tokens_in(std::string const& text) try {
    constexpr std::string_view blanks = " \t\r\n";
    auto const first = text.find_first_not_of(blanks);
    if (first == std::string::npos) return {};
    if (text[first] == '{') {
        for (auto const& [name, value] : json_members_of(text)) {
            if (name == "tokens") return json_tokens_of(value);
        }
        throw BadUsage{"the object has no member tokens"};
    }
    auto const last = text.find_last_not_of(blanks);
    if (text[first] == '[') return json_tokens_of(text.substr(first, last - first + 1));
    std::vector<Token> tokens;
    constexpr std::string_view between = " \t\r\n,";
    for (auto at = first; at != std::string::npos;) {
        auto const end = std::min(text.find_first_of(between, at), text.size());
        Token token = 0;
        auto const [rest, failed] = std::from_chars(text.data() + at, text.data() + end, token);
        if (failed != std::errc{} || rest != text.data() + end || token < 0) {
            throw BadUsage{"'" + text.substr(at, end - at) + "' is not the id of a token",
                           "give ids with blanks or commas in between, or a JSON list of them"};
        }
        tokens.push_back(token);
        at = text.find_first_not_of(between, end);
    }
    return tokens;
} catch (Error const& error) {
    throw BadUsage{std::string{"the prompt is not a list of tokens: "} + error.what(),
                   "give ids with blanks or commas in between, or a JSON list of them"};
}

PromptSession::PromptSession(PromptArguments const& arguments, Context& context)
    : service_{with_tokenizer(context.client_options(), arguments)},
      sampler_{service_.create_sampling_client(model_of(service_, arguments.model))} {
    auto const given = given_text(arguments, context);
    find_tokenizer(!arguments.tokens);
    prompt_ = arguments.tokens ? tokens_in(given) : tokenizer_->encode(given);
    if (prompt_.empty()) throw BadUsage{"the prompt is empty"};
}

std::string PromptSession::given_text(PromptArguments const& arguments, Context& context) const {
    if (arguments.text) return *arguments.text;
    if (!arguments.file.empty() && arguments.file != "-") return content_of(arguments.file);
    if (context.terminal.screen().in) context.terminal.note("reading the prompt; Ctrl-D ends it");
    return read_all(context.in);
}

void PromptSession::find_tokenizer(bool needed) {
    auto pending = sampler_.get_tokenizer();
    auto found = pending.result();
    if (found) {
        tokenizer_ = *found;
        return;
    }
    if (needed || found.error().kind() != ErrorKind::validation) found.error().raise();
    no_text_ = found.error().what();
}

std::optional<std::string> PromptSession::text_of(std::span<Token const> tokens) const {
    if (!tokenizer_) return std::nullopt;
    return tokenizer_->decode_text(tokens);
}

void PromptSession::close() {
    auto pending = service_.close(CloseReason::success);
    // What was sampled is there, whatever becomes of the session.
    (void)pending.result();
}

void add_prompt_options(CLI::App& app, PromptArguments& arguments) {
    auto* const prompt =
        app.add_option("prompt,--prompt", arguments.text, "The prompt; by default stdin")
            ->type_name("PROMPT");
    app.add_option("-m,--model,--base-model,--model-path", arguments.model,
                   "The name of a model, or a checkpoint: tinker://RUN/sampler_weights/NAME, "
                   "@latest")
        ->type_name("MODEL")
        ->check(not_empty())
        ->required();
    app.add_option("--prompt-file", arguments.file, "Read the prompt from a file; -: from stdin")
        ->type_name("FILE")
        ->check(not_empty())
        ->excludes(prompt);
    app.add_flag("--tokens", arguments.tokens,
                 "The prompt is ids of tokens: 1 2 3, [1,2,3] or {\"tokens\":[1,2,3]}");
    app.add_option("--tokenizer", arguments.tokenizer,
                   "A tokenizer.json, the folder of a model, or a name; by default that of the "
                   "model, if it is on this machine")
        ->type_name("FILE_OR_FOLDER")
        ->check(not_empty());
}

}  // namespace tinkxx::cli
