#include "commands/about/about.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::cli {
namespace {

struct CompletionArguments {
    std::string shell{};
};

/// A command and its options, as shells want to know them.
struct Offered {
    std::string path{};
    std::string summary{};
    std::vector<std::pair<std::string, std::string>> options{};
};

std::string first_line(std::string const& text) { return text.substr(0, text.find('\n')); }

std::vector<Offered> offered_by(Program const& program) {
    std::vector<Offered> all;
    for (auto const* const command : program.commands_of("")) {
        Globals globals;
        auto const declared = Program::declared(*command, globals);
        Offered one{command->path, command->summary, {}};
        CLI::App const& app = *declared.options;
        auto const add = [&one](CLI::App const& part) {
            for (auto const* const option : part.get_options()) {
                for (auto const& name : option->get_lnames()) {
                    one.options.emplace_back("--" + name, first_line(option->get_description()));
                }
            }
        };
        add(app);
        for (auto const* const group : app.get_subcommands({})) add(*group);
        all.push_back(std::move(one));
    }
    return all;
}

/// Words that may follow `group`; at the top the first words of all commands.
std::vector<std::string> words_after(std::vector<Offered> const& all, std::string_view group) {
    std::set<std::string> words;
    for (auto const& one : all) {
        auto const space = one.path.find(' ');
        if (group.empty()) {
            words.insert(one.path.substr(0, space));
        } else if (space != std::string::npos && one.path.substr(0, space) == group) {
            words.insert(one.path.substr(space + 1));
        }
    }
    return {words.begin(), words.end()};
}

std::string joined(std::vector<std::string> const& words) {
    std::string text;
    for (auto const& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
}

std::string options_of(Offered const& one) {
    std::vector<std::string> names;
    for (auto const& [name, about] : one.options) names.push_back(name);
    return joined(names);
}

std::string bash(std::vector<Offered> const& all) {
    std::string text =
        "# Completion of tinkxx in bash: source <(tinkxx completion bash)\n"
        "_tinkxx() {\n"
        "    local word=${COMP_WORDS[COMP_CWORD]} path= i words=\n"
        "    for ((i = 1; i < COMP_CWORD && i <= 2; ++i)); do\n"
        "        [[ ${COMP_WORDS[i]} == -* ]] && break\n"
        "        path+=\"${path:+ }${COMP_WORDS[i]}\"\n"
        "    done\n"
        "    while :; do\n"
        "        case $path in\n"
        "            '') words='" +
        joined(words_after(all, "")) + " --help --version' ;;\n";
    for (auto const& word : words_after(all, "")) {
        auto const next = words_after(all, word);
        if (!next.empty()) text += "            " + word + ") words='" + joined(next) + "' ;;\n";
    }
    for (auto const& one : all) {
        text += "            '" + one.path + "') words='" + options_of(one) + "' ;;\n";
    }
    return text +
           "        esac\n"
           "        [[ -n $words || $path != *' '* ]] && break\n"
           "        path=${path% *}\n"
           "    done\n"
           "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
           "}\n"
           "complete -o default -F _tinkxx tinkxx\n";
}

/// In single quotes, for zsh and fish.
std::string quoted(std::string const& text) {
    std::string out = "'";
    for (auto const c : text) {
        if (c == '\'') {
            out += "'\\''";
        } else {
            out += c;
        }
    }
    return out + '\'';
}

std::string zsh(std::vector<Offered> const& all) {
    std::string text =
        "#compdef tinkxx\n"
        "# Completion of tinkxx in zsh: tinkxx completion zsh >~/.zfunc/_tinkxx\n"
        "_tinkxx() {\n"
        "    local path=\"${(j: :)${(@)words[2,CURRENT-1]:#-*}[1,2]}\"\n"
        "    local -a offered\n"
        "    while :; do\n"
        "        case $path in\n";
    auto const list = [&text](std::string const& path,
                              std::vector<std::pair<std::string, std::string>> const& words) {
        text += "            " + quoted(path) + ") offered=(";
        for (auto const& [word, about] : words) text += quoted(word + ':' + about) + ' ';
        text += ") ;;\n";
    };
    std::vector<std::pair<std::string, std::string>> top;
    for (auto const& word : words_after(all, "")) {
        auto const found = std::ranges::find(all, word, &Offered::path);
        top.emplace_back(word, found == all.end() ? "" : found->summary);
        std::vector<std::pair<std::string, std::string>> below;
        for (auto const& next : words_after(all, word)) {
            below.emplace_back(next,
                               std::ranges::find(all, word + ' ' + next, &Offered::path)->summary);
        }
        if (!below.empty()) list(word, below);
    }
    list("", top);
    for (auto const& one : all) list(one.path, one.options);
    return text +
           "        esac\n"
           "        (( $#offered )) && break\n"
           "        [[ $path == *' '* ]] || break\n"
           "        path=${path% *}\n"
           "    done\n"
           "    _describe -V 'tinkxx' offered || _files\n"
           "}\n"
           "compdef _tinkxx tinkxx\n";
}

std::string fish(std::vector<Offered> const& all) {
    std::string text = "# Completion of tinkxx in fish: tinkxx completion fish | source\n";
    auto const tops = joined(words_after(all, ""));
    for (auto const& word : words_after(all, "")) {
        auto const found = std::ranges::find(all, word, &Offered::path);
        text +=
            "complete -c tinkxx -f -n 'not __fish_seen_subcommand_from " + tops + "' -a " + word;
        if (found != all.end()) text += " -d " + quoted(found->summary);
        text += '\n';
    }
    for (auto const& one : all) {
        auto const space = one.path.find(' ');
        auto when = "__fish_seen_subcommand_from " + one.path.substr(0, space);
        if (space != std::string::npos) {
            auto const next = one.path.substr(space + 1);
            text += "complete -c tinkxx -f -n '" + when + "; and not __fish_seen_subcommand_from " +
                    joined(words_after(all, one.path.substr(0, space))) + "' -a " + next + " -d " +
                    quoted(one.summary) + '\n';
            when += "; and __fish_seen_subcommand_from " + next;
        }
        for (auto const& [name, about] : one.options) {
            text += "complete -c tinkxx -n '" + when + "' -l " + name.substr(2) + " -d " +
                    quoted(about) + '\n';
        }
    }
    return text;
}

/// For roff, where a backslash and a dot or quote at the beginning of a line mean something.
std::string roff(std::string const& text) {
    std::string out;
    bool begins = true;
    for (auto const c : text) {
        if (begins && (c == '.' || c == '\'')) out += "\\&";
        begins = c == '\n';
        if (c == '\\') {
            out += "\\e";
        } else if (c == '-') {
            out += "\\-";
        } else {
            out += c;
        }
    }
    return out;
}

/// The manual, made of the help.
std::string manual(Program const& program) {
    std::string text =
        ".TH TINKXX 1\n.SH NAME\ntinkxx \\- train and sample language models with the Tinker API\n"
        ".SH SYNOPSIS\n.B tinkxx\n.I COMMAND\n[\\fIOPTIONS\\fR]\n.SH COMMANDS\n.nf\n";
    text += roff(program.help()) + ".fi\n";
    for (auto const* const command : program.commands_of("")) {
        Globals globals;
        text += ".SH \"TINKXX " + roff(command->path) + "\"\n.nf\n" +
                roff(Program::declared(*command, globals).options->help()) + ".fi\n";
    }
    return text;
}

}  // namespace

Command completion_command(std::function<Program()> all) {
    return {.path = "completion",
            .summary = "Commands and options complete in the shell",
            .examples =
                "Examples:\n"
                "  source <(tinkxx completion bash)                in ~/.bashrc\n"
                "  tinkxx completion zsh >~/.zfunc/_tinkxx\n"
                "  tinkxx completion fish >~/.config/fish/completions/tinkxx.fish",
            .declare = [all = std::move(all)](CLI::App& app) -> Action {
                auto arguments = std::make_shared<CompletionArguments>();
                app.add_option("shell", arguments->shell, "bash, zsh or fish")
                    ->type_name("SHELL")
                    ->check(CLI::IsMember({"bash", "zsh", "fish"}))
                    ->required();
                return [arguments, all](Context& context) {
                    auto const offered = offered_by(all());
                    context.out() << (arguments->shell == "bash"  ? bash(offered)
                                      : arguments->shell == "zsh" ? zsh(offered)
                                                                  : fish(offered));
                    return Exit::success;
                };
            }};
}

Command man_command(std::function<Program()> all) {
    return {.path = "man",
            .summary = "This manual as a page for man",
            .examples =
                "Examples:\n"
                "  tinkxx man | man -l -\n"
                "  tinkxx man >/usr/local/share/man/man1/tinkxx.1",
            .declare = [all = std::move(all)](CLI::App& /*app*/) -> Action {
                return [all](Context& context) {
                    context.out() << manual(all());
                    return Exit::success;
                };
            }};
}

}  // namespace tinkxx::cli
