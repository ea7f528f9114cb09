#include "commands/text/text_command.hpp"

#include "frame/troubles.hpp"
#include "frame/values.hpp"

#include <tinkxx/log.hpp>
#include <tinkxx/text/hub_http.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

namespace tinkxx::cli {

namespace {

namespace fs = std::filesystem;

fs::path place_of(TokenizerArguments const& arguments) {
    std::error_code ignored;
    if (fs::exists(arguments.tokenizer, ignored)) return arguments.tokenizer;
    // A path that does not exist is no name of a model.
    bool const named = arguments.tokenizer.find_first_of("/.~") != 0 &&
                       !arguments.tokenizer.ends_with(".json") &&
                       arguments.tokenizer.find('/') != std::string::npos;
    if (!named) return arguments.tokenizer;
    text::TokenizerPlaces places;
    if (arguments.download) {
        places.download = [](TokenizerId const& id) {
            text::TokenizerHub const hub{
                {.connection = std::make_shared<text::HttpHubConnection>()}};
            return hub.fetch(id);
        };
    }
    return text::find_tokenizer(arguments.tokenizer, places);
}

}  // namespace

void add_tokenizer(CLI::App& app, TokenizerArguments& arguments) {
    app.add_option("--tokenizer", arguments.tokenizer,
                   "A tokenizer.json or *.tiktoken file, the folder of a model, or the name of "
                   "one in the cache of Hugging Face")
        ->type_name("FILE_OR_FOLDER")
        ->check(not_empty())
        ->required();
    app.add_option("--pattern", arguments.pattern,
                   "The regular expression that cuts a text into words, for *.tiktoken files "
                   "whose name does not tell it")
        ->type_name("REGEX")
        ->check(not_empty());
    app.add_flag("--download", arguments.download,
                 "Fetch the files of a name that is not on this machine from the hub");
}

void add_threads(CLI::App& app, unsigned& threads) {
    app.add_option("--threads", threads, "Threads for --jsonl; 0 is one for each CPU")
        ->type_name("N")
        ->check(CLI::Range(0U, 4096U))
        ->capture_default_str();
}

text::LoadedTokenizer choose_tokenizer(TokenizerArguments const& arguments) {
    return text::load_tokenizer(place_of(arguments), {.tiktoken_pattern = arguments.pattern});
}

std::string printable(std::string text, Terminal const& terminal) {
    if (!terminal.screen().out) return text;
    std::string out;
    std::string_view rest = text;
    while (!rest.empty()) {
        auto const end = std::min(rest.find_first_of("\n\t"), rest.size());
        out += one_line(rest.substr(0, end));
        if (end < rest.size()) out += rest[end];
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return out;
}

namespace {

/// What the library advises a program to do is an option here.
void advise(Trouble& trouble) {
    constexpr std::string_view advice = "choose InvalidUtf8::replace";
    for (auto* const text : {&trouble.reason, &trouble.way_out}) {
        if (auto const at = text->find(advice); at != std::string::npos) {
            text->replace(at, advice.size(), "add --lossy");
        }
    }
}

}  // namespace

Exit complain_of_line(BadLine const& line, std::string_view wanted, Terminal& terminal) {
    auto trouble =
        split_message("line " + std::to_string(line.number) + " cannot be used", line.reason);
    advise(trouble);
    if (trouble.way_out.empty()) trouble.way_out = wanted;
    terminal.complain(trouble);
    return Exit::failure;
}

Exit guard(std::string_view name, std::string_view headline, Terminal& terminal,
           std::function<Exit()> const& command) try {
    auto const done = command();
    terminal.out().flush();
    if (terminal.out()) return done;
    terminal.complain(
        {.headline = std::string{headline}, .reason = "the output cannot be written"});
    return Exit::failure;
} catch (Error const& error) {
    auto trouble = split_message(std::string{headline}, error.what());
    advise(trouble);
    if (trouble.way_out.empty()) trouble.way_out = "tinkxx " + std::string{name} + " --help";
    terminal.complain(trouble);
    return Exit::failure;
} catch (std::system_error const& error) {
    terminal.complain({.headline = std::string{headline}, .reason = error.what()});
    return Exit::failure;
} catch (std::bad_alloc const&) {
    terminal.complain({.headline = std::string{headline}, .reason = "there is not enough memory"});
    return Exit::failure;
}

}  // namespace tinkxx::cli
