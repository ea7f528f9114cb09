#pragma once

#include "frame/context.hpp"

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace tinkxx::cli {

/// A line on stderr that says how far something has come, how fast it goes and how long it will
/// take. Shown only where people read it, and only if it takes more than a second.
///
/// Any thread, one at a time.
class Progress {
public:
    enum class Unit { things, bytes };

    /// `what` is a name for it, such as "runs".
    Progress(Context& context, std::string what, Unit unit);
    ~Progress() { clear(); }
    Progress(Progress const&) = delete;
    Progress& operator=(Progress const&) = delete;

    void show(std::int64_t done, std::optional<std::int64_t> total);
    /// Takes the line away.
    void clear();

private:
    Context& context_;
    std::string what_;
    Unit unit_;
    Timestamp::Time begun_;
    std::mutex mutex_{};
    Timestamp::Time last_{};               // guarded by the mutex
    std::optional<std::int64_t> first_{};  // likewise: what was there already
    bool shown_{false};                    // likewise
};

}  // namespace tinkxx::cli
