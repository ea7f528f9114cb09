#include "dialog/question.hpp"

#include "frame/troubles.hpp"

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace tinkxx::cli {

std::optional<std::string> read_line(int file) {
    std::string line;
    while (true) {
        char c = 0;
        auto const got = ::read(file, &c, 1);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw std::system_error{errno, std::generic_category(), "stdin"};
        if (got == 0) return line.empty() ? std::nullopt : std::optional{line};
        if (c == '\n') return line;
        line += c;
    }
}

bool ask(std::string_view question, std::string_view option, Context& context) {
    if (!context.terminal.screen().in || !context.terminal.screen().err) {
        throw BadUsage{"there is no terminal to ask on", "add " + std::string{option}};
    }
    context.err() << question << " [y/N] " << std::flush;
    auto const answer = read_line(context.in);
    if (!answer) context.err() << '\n';
    return answer == "y" || answer == "Y" || answer == "yes" || answer == "Yes";
}

}  // namespace tinkxx::cli
