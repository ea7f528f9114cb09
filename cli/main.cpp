// The command line of tinkxx. Help and version start no thread and open no connection.
#include "all_commands.hpp"
#include "output/interrupt.hpp"

#include <exception>
#include <string>
#include <vector>

int main(int argc, char** argv) {
    auto terminal = tinkxx::cli::Terminal::standard();
    try {
        tinkxx::cli::end_by_interrupt();
        tinkxx::cli::Context context{.terminal = terminal};
        std::vector<std::string> const arguments{argv + (argc > 0 ? 1 : 0), argv + argc};
        return static_cast<int>(tinkxx::cli::all_commands().run(arguments, context));
    } catch (std::exception const& error) {
        terminal.complain({.headline = "something went wrong", .reason = error.what()});
        return static_cast<int>(tinkxx::cli::Exit::failure);
    }
}
