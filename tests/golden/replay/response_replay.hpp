#pragma once

#include "golden/recordings/recording.hpp"

namespace tinkxx::golden {

/// Whether the operation of a recorded response can be made here.
[[nodiscard]] bool replays_operation(value const& recording);
/// Makes it, answers as the recording says, and expects what the official SDK made of that.
void replay_operation(value const& recording);

}  // namespace tinkxx::golden
