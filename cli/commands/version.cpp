#include "commands/version.hpp"

#include <tinkxx/version.hpp>

namespace tinkxx::cli {

Exit version(VersionArguments const& arguments, Terminal& terminal) {
    if (arguments.json) {
        terminal.out() << "{\"version\":" << json_text(TINKXX_VERSION) << "}\n";
    } else {
        terminal.out() << "tinkxx " << TINKXX_VERSION << '\n';
    }
    return Exit::success;
}

}  // namespace tinkxx::cli
