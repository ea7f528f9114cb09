#pragma once

#include "recording.hpp"

#include <set>
#include <string>
#include <vector>

namespace tinkxx::golden {

/// Whether there is a public call here for a recorded one.
[[nodiscard]] bool replays_call(value const& recording);
/// Makes the call, and expects what the recording says: what is sent, and what comes of it.
void replay_call(value const& recording);
/// As above, for calls of telemetry that are not public.
void replay_telemetry(value const& recording);

/// The requests of a recording. Those that were sent at once are recorded by their numbers: the
/// first of several came last (R-TRAIN-32).
[[nodiscard]] std::vector<value> in_order_of_arrival(value const& recording);
[[nodiscard]] std::string lower_case(std::string text);

/// Expects a request to be a recorded one of that version, but for what changes every time.
/// `chosen` are the headers that the caller set, in lower case.
void expect_sent(value const& expected, testing::SentRequest const& sent,
                 std::string const& version, std::set<std::string> const& chosen);
/// As above, for the body alone.
void expect_same_body(value const& expected, testing::SentRequest const& sent,
                      std::string const& version);

}  // namespace tinkxx::golden
