#pragma once

#include "golden/recordings/recording.hpp"

#include <set>
#include <string>
#include <string_view>
#include <vector>

// Requests that were sent, and those that a recording has.

namespace tinkxx::golden {

[[nodiscard]] std::string lower_case(std::string text);
[[nodiscard]] std::string sha256(std::string_view bytes);

/// The requests of a recording, as they are to be sent here: a decision of docs/spec/behaviour.md
/// that says otherwise than the official SDK wins.
[[nodiscard]] std::vector<value> expected_requests(value const& recording);

/// Whether it was repeated by the built-in retries of HTTP then, and is by the outer loop now.
[[nodiscard]] bool repeats_by_loop(value const& recording);

/// What is known of the recorded sender.
struct RecordedSender {
    std::string version{};
    /// The headers that the caller set, in lower case.
    std::set<std::string> chosen{};
    /// Numbers of bodies were computed, and their last bits are a matter of the library used.
    bool rounds{false};
};

/// Expects a request to be a recorded one, but for what changes every time.
void expect_sent(value const& expected, testing::SentRequest const& sent,
                 RecordedSender const& sender);
/// As above, for the body alone.
void expect_same_body(value const& expected, testing::SentRequest const& sent,
                      RecordedSender const& sender);

}  // namespace tinkxx::golden
