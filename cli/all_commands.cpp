#include "all_commands.hpp"

#include "commands/about/about.hpp"
#include "commands/account/account.hpp"
#include "commands/checkpoints/checkpoints.hpp"
#include "commands/manage/manage.hpp"
#include "commands/sample/sample.hpp"
#include "commands/server/home.hpp"
#include "commands/server/serve.hpp"
#include "commands/text/detokenize.hpp"
#include "commands/text/render.hpp"
#include "commands/text/tokenize.hpp"

namespace tinkxx::cli {

Program all_commands() {
    return Program{{
        {.title = "A server of your own", .commands = {serve_command(), home_check_command()}},
        {.title = "Models at work", .commands = {sample_command(), logprobs_command()}},
        {.title = "Text", .commands = {tokenize_command(), detokenize_command(), render_command()}},
        {.title = "What you have made",
         .commands = {run_list_command(), run_info_command(), checkpoint_list_command(),
                      checkpoint_info_command(), checkpoint_download_command(),
                      checkpoint_publish_command(), checkpoint_unpublish_command(),
                      checkpoint_set_ttl_command(), checkpoint_delete_command(),
                      session_list_command(), session_info_command(),
                      session_export_trace_command()}},
        {.title = "What there is, and what it costs",
         .commands = {model_list_command(), billing_usage_command(),
                      billing_checkpoint_storage_command()}},
        {.title = "Your key",
         .commands = {auth_login_command(), auth_logout_command(), auth_status_command(),
                      auth_whoami_command()}},
        {.title = "This program",
         .commands = {doctor_command(), help_command(&all_commands),
                      completion_command(&all_commands), man_command(&all_commands),
                      version_command()}},
    }};
}

}  // namespace tinkxx::cli
