#include "frame/program.hpp"

#include "frame/nearest.hpp"
#include "frame/troubles.hpp"
#include "frame/values.hpp"

#include <tinkxx/version.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <exception>
#include <new>
#include <ostream>
#include <system_error>

namespace tinkxx::cli {
namespace {

constexpr char const* about =
    "Trains and samples language models with the Tinker API, on this machine or elsewhere.";

constexpr char const* codes =
    "Exit codes: 0 done; 1 it failed, and stderr says why; 2 the command line is wrong;\n"
    "75 it failed and may succeed later; 130 ended by Ctrl-C.\n"
    "Data goes to stdout, all else to stderr. NO_COLOR turns colour off.\n";

constexpr char const* shared = "Shared options";

void add_output_options(CLI::App& app, Globals& globals) {
    app.add_option("-f,--format", globals.format, "How to print results: table or json")
        ->type_name("FORMAT")
        ->check(CLI::IsMember({"table", "json"}))
        ->group(shared);
    app.add_flag("--json", globals.json, "The same as --format json")->group(shared);
}

void add_client_options(CLI::App& app, Globals& globals) {
    app.add_option("--api-key", globals.api_key, "The key; by default $TINKER_API_KEY")
        ->type_name("KEY")
        ->check(not_empty())
        ->group(shared);
    app.add_option("--base-url", globals.base_url,
                   "The address of the server; by default $TINKER_BASE_URL")
        ->type_name("URL")
        ->check(not_empty())
        ->group(shared);
    constexpr double longest = 1e9;
    app.add_option("--timeout", globals.timeout, "Seconds for each request; 0: no limit")
        ->type_name("SECONDS")
        ->check(CLI::Range(0.0, longest))
        ->capture_default_str()
        ->group(shared);
}

bool is_option(std::string_view word) { return word.size() > 1 && word.front() == '-'; }

std::string_view name_of(std::string_view word) {
    return word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
}

/// Whether a value follows it in a word of its own.
std::size_t words_behind(CLI::Option const& option, std::string_view word) {
    bool const joined = word.starts_with("--") ? word.find('=') != word.npos : word.size() > 2;
    return joined ? 0 : static_cast<std::size_t>(option.get_items_expected_min());
}

std::vector<std::string> option_names(CLI::App const& app) {
    std::vector<std::string> names;
    for (auto const* const option : app.get_options()) {
        for (auto const& name : option->get_lnames()) names.push_back("--" + name);
    }
    return names;
}

/// Says so if a word that looks like an option is not one. CLI11 would first complain of what is
/// missing because of it.
void check_options(CLI::App const& app, std::vector<std::string> const& words) {
    for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
        auto const& word = words[i];
        // A negative number is a value.
        if (!is_option(word) || (word[1] >= '0' && word[1] <= '9')) continue;
        std::string const name{name_of(word)};
        auto const* const option = app.get_option_no_throw(name);
        if (option != nullptr) {
            i += words_behind(*option, word);
            continue;
        }
        auto const near = nearest(name, option_names(app));
        throw BadUsage{"there is no option " + name +
                       (near.empty() ? "" : "; did you mean " + near + "?")};
    }
}

void add_line(std::string& to, std::string const& name, std::string const& text) {
    constexpr std::size_t column = 30;
    auto const gap = name.size() + 2 < column ? column - name.size() - 2 : std::size_t{1};
    to += "  " + name + std::string(gap, ' ') + text + '\n';
}

Exit complain_of_usage(BadUsage const& error, std::string const& help, Terminal& terminal) {
    terminal.complain({.headline = "the command line is wrong",
                       .reason = error.what(),
                       .way_out = error.way_out().empty() ? help : error.way_out()});
    return Exit::usage;
}

/// What was printed has to arrive. A reader that has seen enough is no failure.
Exit finish(Exit done, Terminal& terminal) {
    errno = 0;
    terminal.out().flush();
    if (terminal.out()) return done;
    if (errno == EPIPE) return done;
    terminal.complain(
        {.headline = "the output cannot be written",
         .reason = errno == 0 ? std::string{} : std::generic_category().message(errno),
         .way_out = "see where stdout leads, and that there is room"});
    return Exit::failure;
}

Exit guarded(Action const& action, std::string const& help, Context& context) try {
    return finish(action(context), context.terminal);
} catch (BadUsage const& error) {
    return complain_of_usage(error, help, context.terminal);
} catch (Error const& error) {
    (void)finish(Exit::success, context.terminal);
    auto trouble = trouble_of(error);
    if (trouble.way_out.empty()) trouble.way_out = help;
    context.terminal.complain(trouble);
    return exit_of(error);
} catch (std::bad_alloc const&) {
    context.terminal.complain({.headline = "there is not enough memory"});
    return Exit::failure;
} catch (std::exception const& error) {
    context.terminal.complain(
        {.headline = "the command failed", .reason = error.what(), .way_out = help});
    return Exit::failure;
}

}  // namespace

/// One command line, from left to right.
class Program::Line {
public:
    Line(Program const& program, std::vector<std::string> const& words, Context& context)
        : program_{program}, words_{words}, context_{context} {}

    Exit run() {
        if (read_shared()) return Exit::success;
        if (at_ == words_.size()) throw BadUsage{"no command is given", "tinkxx --help"};
        auto path = words_[at_++];
        if (program_.is_group(path)) {
            help_ = "tinkxx " + path + " --help";
            if (at_ == words_.size()) throw BadUsage{"which command of tinkxx " + path + "?"};
            if (words_[at_] == "--help" || words_[at_] == "-h") {
                context_.out() << program_.help_of_group(path);
                return Exit::success;
            }
            path += ' ' + words_[at_++];
        }
        auto const* const command = program_.find(path);
        if (command == nullptr) unknown(path);
        return run(*command);
    }

    /// What explains the rest.
    [[nodiscard]] std::string const& help() const noexcept { return help_; }

private:
    /// Options before the command, which are read as if they stood behind it. True if that is all.
    bool read_shared() {
        CLI::App app;
        Globals ignored;
        add_output_options(app, ignored);
        add_client_options(app, ignored);
        while (at_ < words_.size() && is_option(words_[at_])) {
            auto const& word = words_[at_];
            if (word == "--help" || word == "-h") {
                context_.out() << program_.help();
                return true;
            }
            if (word == "--version") {
                context_.out() << "tinkxx " << TINKXX_VERSION << '\n';
                return true;
            }
            check_options(app, {word});
            auto const* const option = app.get_option_no_throw(std::string{name_of(word)});
            auto const end = at_ + 1 + words_behind(*option, word);
            if (end > words_.size()) throw BadUsage{word + " needs a value"};
            while (at_ < end) shared_.push_back(words_[at_++]);
        }
        return false;
    }

    [[noreturn]] void unknown(std::string const& path) const {
        std::vector<std::string> known;
        auto const space = path.find(' ');
        auto const group = space == path.npos ? std::string{} : path.substr(0, space);
        auto const word = space == path.npos ? path : path.substr(space + 1);
        std::string same;
        for (auto const* const command : program_.commands_of(group)) {
            auto const cut = command->path.find(' ');
            known.push_back(group.empty() ? command->path.substr(0, cut)
                                          : command->path.substr(cut + 1));
            if (group.empty() && cut != std::string::npos &&
                command->path.substr(cut + 1) == word) {
                same += (same.empty() ? "" : ", ") + command->path;
            }
        }
        auto hint = nearest(word, known);
        if (!hint.empty()) {
            hint = "; did you mean " + (group.empty() ? hint : group + ' ' + hint) + "?";
        } else if (!same.empty()) {
            hint = "; there is " + same;
        }
        throw BadUsage{"there is no command " + path + hint};
    }

    Exit run(Command const& command) {
        help_ = "tinkxx " + command.path + " --help";
        auto declared = Program::declared(command, context_.globals);
        auto& app = *declared.options;
        for (auto const& word : shared_) {
            if (is_option(word) &&
                (command.takes == Takes::nothing ||
                 app.get_option_no_throw(std::string{name_of(word)}) == nullptr)) {
                throw BadUsage{"tinkxx " + command.path + " takes no " +
                               std::string{name_of(word)} + " before its name"};
            }
        }
        auto words = shared_;
        words.insert(words.end(), words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
        check_options(app, words);
        std::ranges::reverse(words);  // as CLI11 wants it
        try {
            app.parse(words);
        } catch (CLI::Success const& /*asked*/) {
            context_.out() << app.help();
            return Exit::success;
        } catch (CLI::ParseError const& error) {
            throw BadUsage{error.what()};
        }
        return guarded(declared.action, help_, context_);
    }

    Program const& program_;
    std::vector<std::string> const& words_;
    Context& context_;
    std::size_t at_{0};
    std::vector<std::string> shared_{};
    std::string help_{"tinkxx --help"};
};

Exit Program::run(std::vector<std::string> const& arguments, Context& context) const {
    Line line{*this, arguments, context};
    try {
        return finish(line.run(), context.terminal);
    } catch (BadUsage const& error) {
        return complain_of_usage(error, line.help(), context.terminal);
    }
}

Command const* Program::find(std::string_view path) const noexcept {
    for (auto const& section : sections_) {
        for (auto const& command : section.commands) {
            if (command.path == path) return &command;
        }
    }
    return nullptr;
}

bool Program::is_group(std::string_view word) const noexcept {
    return !commands_of(word).empty() && !word.empty();
}

std::vector<Command const*> Program::commands_of(std::string_view group) const {
    std::vector<Command const*> found;
    for (auto const& section : sections_) {
        for (auto const& command : section.commands) {
            bool const within =
                group.empty() || (command.path.starts_with(group) &&
                                  command.path.substr(group.size()).starts_with(' '));
            if (within && !command.hidden) found.push_back(&command);
        }
    }
    return found;
}

DeclaredCommand Program::declared(Command const& command, Globals& globals) {
    DeclaredCommand made{
        std::make_unique<CLI::App>(command.about.empty() ? command.summary : command.about,
                                   "tinkxx " + command.path),
        {}};
    made.action = command.declare(*made.options);
    made.options->footer(command.examples);
    if (command.takes != Takes::nothing) add_output_options(*made.options, globals);
    if (command.takes == Takes::client) add_client_options(*made.options, globals);
    return made;
}

std::string Program::help() const {
    auto text = std::string{about} + "\nUsage: tinkxx COMMAND [OPTIONS]\n";
    for (auto const& section : sections_) {
        text += '\n' + section.title + ":\n";
        for (auto const& command : section.commands) {
            if (!command.hidden) add_line(text, command.path, command.summary);
        }
    }
    text += "\nOptions:\n";
    add_line(text, "-h, --help", "This text; behind a command its help, with examples");
    add_line(text, "--version", "The version of tinkxx");
    return text + '\n' + codes;
}

std::string Program::help_of_group(std::string_view group) const {
    std::string text = "Usage: tinkxx " + std::string{group} + " COMMAND [OPTIONS]\n\nCommands:\n";
    for (auto const* const command : commands_of(group)) {
        add_line(text, command->path, command->summary);
    }
    return text + "\ntinkxx " + std::string{group} + " COMMAND --help explains each of them.\n";
}

}  // namespace tinkxx::cli
