#pragma once

#include "golden/recordings/recording.hpp"

namespace tinkxx::golden {

/// Whether there is a public call here for a recorded one.
[[nodiscard]] bool replays_call(value const& recording);
/// Makes the call, and expects what the recording says: what is sent, and what comes of it.
void replay_call(value const& recording);
/// As above, for calls of telemetry that are not public.
void replay_telemetry(value const& recording);

}  // namespace tinkxx::golden
