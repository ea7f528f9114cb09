#pragma once

#include "frame/command.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::cli {

/// Commands under one heading of the general help.
struct Section {
    std::string title{};
    std::vector<Command> commands{};
};

/// A command with its options, ready to read a command line.
struct DeclaredCommand {
    std::unique_ptr<CLI::App> options{};
    Action action{};
};

/// All commands, and how one of them is chosen and run. Only the options of the one that is called
/// are made, so help and version take no time.
class Program {
public:
    explicit Program(std::vector<Section> sections) : sections_{std::move(sections)} {}

    /// Runs what the command line says and puts what goes wrong into words. `arguments` are without
    /// the name of the program.
    [[nodiscard]] Exit run(std::vector<std::string> const& arguments, Context& context) const;

    [[nodiscard]] std::vector<Section> const& sections() const noexcept { return sections_; }
    /// Null if there is none.
    [[nodiscard]] Command const* find(std::string_view path) const noexcept;
    /// Whether commands are called "WORD something".
    [[nodiscard]] bool is_group(std::string_view word) const noexcept;
    /// Those of a group, or all; without hidden ones.
    [[nodiscard]] std::vector<Command const*> commands_of(std::string_view group) const;
    /// Its options set members of `globals`.
    [[nodiscard]] static DeclaredCommand declared(Command const& command, Globals& globals);

    [[nodiscard]] std::string help() const;
    [[nodiscard]] std::string help_of_group(std::string_view group) const;

private:
    class Line;

    std::vector<Section> sections_;
};

}  // namespace tinkxx::cli
