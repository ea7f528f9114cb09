#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tinkxx::golden {

/// A line of wire-not-applied.txt: recordings that are not replayed, and why.
struct NotApplied {
    /// They belong to a part of the client that is yet to come; else they never apply.
    bool waits{false};
    /// What `pattern` is matched with: `call`, `operation`, `section` or `name`.
    std::string kind{};
    std::string pattern{};
    std::string reason{};
};

/// The first line that matches.
[[nodiscard]] std::optional<NotApplied> not_applied(std::string const& kind,
                                                    std::string const& subject);

}  // namespace tinkxx::golden
