#include "all_commands.hpp"

#include "commands/about/about.hpp"
#include "commands/server/home.hpp"
#include "commands/server/serve.hpp"
#include "commands/text/detokenize.hpp"
#include "commands/text/render.hpp"
#include "commands/text/tokenize.hpp"

namespace tinkxx::cli {

Program all_commands() {
    return Program{{
        {.title = "A server of your own", .commands = {serve_command(), home_check_command()}},
        {.title = "Text", .commands = {tokenize_command(), detokenize_command(), render_command()}},
        {.title = "This program", .commands = {version_command()}},
    }};
}

}  // namespace tinkxx::cli
