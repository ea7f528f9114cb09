#pragma once

#include "frame/context.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace tinkxx::cli {

/// Which of the `Globals` a command takes.
enum class Takes : std::uint8_t {
    nothing,
    output,  ///< `--format` and `--json`
    client,  ///< also what says how to reach the service
};

/// What runs a command, once its options are read.
using Action = std::function<Exit(Context&)>;

/// A command: how it is called, what its help says, and which options it has. It stands beside the
/// function that does it.
struct Command {
    /// Such as "checkpoint list".
    std::string path{};
    /// One line, for lists of commands.
    std::string summary{};
    /// The first paragraph of its help. Empty: the summary.
    std::string about{};
    /// The last paragraphs of its help: examples, exit codes.
    std::string examples{};
    Takes takes{Takes::nothing};
    /// Adds the options.
    std::function<Action(CLI::App&)> declare{};
    /// Left out of lists and help.
    bool hidden{false};
};

/// Makes `Command::declare` of a function that adds options which set members of `Arguments`, and
/// of the function that does the command.
template <class Arguments>
std::function<Action(CLI::App&)> declare(void (*add_options)(CLI::App&, Arguments&),
                                         Exit (*run)(Arguments const&, Context&)) {
    return [add_options, run](CLI::App& app) -> Action {
        auto arguments = std::make_shared<Arguments>();
        add_options(app, *arguments);
        return [arguments, run](Context& context) { return run(*arguments, context); };
    };
}

/// As above, for a command without options.
inline std::function<Action(CLI::App&)> declare(Exit (*run)(Context&)) {
    return [run](CLI::App& /*app*/) -> Action { return run; };
}

}  // namespace tinkxx::cli
