#pragma once

#include "golden/recordings/recording.hpp"

#include <optional>
#include <string>

namespace tinkxx::golden {

enum class Verdict { waits, never, differs, older };

/// A line of wire-not-applied.txt: recordings that are not replayed as they are, and why.
struct NotApplied {
    Verdict verdict{};
    /// What `pattern` is matched with: `call`, `operation`, `section` or `form`.
    std::string kind{};
    std::string pattern{};
    std::string reason{};

    [[nodiscard]] bool skipped() const noexcept {
        return verdict == Verdict::waits || verdict == Verdict::never;
    }
};

/// The first line that matches.
[[nodiscard]] std::optional<NotApplied> not_applied(std::string const& kind,
                                                    std::string const& subject);
/// The first line whose form the recording has.
[[nodiscard]] std::optional<NotApplied> not_applied_by_form(value const& recording);

}  // namespace tinkxx::golden
