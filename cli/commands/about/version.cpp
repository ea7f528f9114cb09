#include "commands/about/about.hpp"

#include <tinkxx/version.hpp>

namespace tinkxx::cli {
namespace {

Exit version(Context& context) {
    if (context.json()) {
        context.out() << "{\"version\":" << json_text(TINKXX_VERSION) << "}\n";
    } else {
        context.out() << "tinkxx " << TINKXX_VERSION << '\n';
    }
    return Exit::success;
}

}  // namespace

Command version_command() {
    return {.path = "version",
            .summary = "The version of tinkxx",
            .examples = "With --json: {\"version\":\"0.1.0\"}",
            .takes = Takes::output,
            .declare = declare(&version)};
}

}  // namespace tinkxx::cli
