#include "commands/text_command.hpp"

#include <tinkxx/log.hpp>
#include <tinkxx/text/hub_http.hpp>

#include <unistd.h>

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

/// In words, from "operation: cause; way out".
Trouble text_trouble(std::string headline, std::string const& message) {
    auto const cut = message.find("; ");
    return {.headline = std::move(headline),
            .reason = message.substr(0, cut),
            .way_out = cut == std::string::npos ? std::string{} : message.substr(cut + 2)};
}

}  // namespace

text::LoadedTokenizer choose_tokenizer(TokenizerArguments const& arguments) {
    return text::load_tokenizer(place_of(arguments), {.tiktoken_pattern = arguments.pattern});
}

std::string printable(std::string text) {
    if (::isatty(STDOUT_FILENO) != 1) return text;
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

Exit complain_of_line(BadLine const& line, std::string_view wanted, Terminal& terminal) {
    auto trouble =
        text_trouble("line " + std::to_string(line.number) + " cannot be used", line.reason);
    if (trouble.way_out.empty()) trouble.way_out = wanted;
    terminal.complain(trouble);
    return Exit::failure;
}

Exit guard(std::string_view headline, Terminal& terminal,
           std::function<Exit()> const& command) try {
    auto const done = command();
    terminal.out().flush();
    if (terminal.out()) return done;
    terminal.complain(
        {.headline = std::string{headline}, .reason = "the output cannot be written"});
    return Exit::failure;
} catch (Error const& error) {
    auto trouble = text_trouble(std::string{headline}, error.what());
    if (trouble.way_out.empty()) trouble.way_out = "tinkxx tokenize --help";
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
