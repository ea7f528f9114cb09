#pragma once

#include "frame/command.hpp"

namespace tinkxx::cli {

[[nodiscard]] Command checkpoint_list_command();
[[nodiscard]] Command checkpoint_info_command();
[[nodiscard]] Command checkpoint_publish_command();
[[nodiscard]] Command checkpoint_unpublish_command();
[[nodiscard]] Command checkpoint_set_ttl_command();
[[nodiscard]] Command checkpoint_delete_command();
[[nodiscard]] Command checkpoint_download_command();

}  // namespace tinkxx::cli
