#pragma once

#include "commands/text/json_lines.hpp"
#include "frame/command.hpp"

#include <tinkxx/error.hpp>
#include <tinkxx/text/load.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace tinkxx::cli {

/// How the commands about text are told which tokenizer to use.
struct TokenizerArguments {
    /// A file, a folder, or the name of a model.
    std::string tokenizer{};
    /// For files in the format of tiktoken.
    std::string pattern{};
    /// What is not on this machine is fetched.
    bool download{false};
};

/// Throws `Error`.
[[nodiscard]] text::LoadedTokenizer choose_tokenizer(TokenizerArguments const& arguments);

/// The options that set them.
void add_tokenizer(CLI::App& app, TokenizerArguments& arguments);
void add_threads(CLI::App& app, unsigned& threads);

/// Where people read it, `text` without what a terminal would obey; else as it is.
[[nodiscard]] std::string printable(std::string text, Terminal const& terminal);

/// Says which line of stdin is wrong; `wanted` is what it should have been.
Exit complain_of_line(BadLine const& line, std::string_view wanted, Terminal& terminal);

/// Runs a command, and puts what it throws into words.
[[nodiscard]] Exit guard(std::string_view name, std::string_view headline, Terminal& terminal,
                         std::function<Exit()> const& command);

}  // namespace tinkxx::cli
