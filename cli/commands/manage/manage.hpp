#pragma once

#include "frame/command.hpp"

namespace tinkxx::cli {

/// What an account has made and used.
[[nodiscard]] Command run_list_command();
[[nodiscard]] Command run_info_command();
[[nodiscard]] Command session_list_command();
[[nodiscard]] Command session_info_command();
[[nodiscard]] Command session_export_trace_command();
[[nodiscard]] Command billing_usage_command();
[[nodiscard]] Command billing_checkpoint_storage_command();
[[nodiscard]] Command model_list_command();

}  // namespace tinkxx::cli
