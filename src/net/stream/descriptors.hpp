#pragma once

#include <tinkxx/scheduler.hpp>

#include <optional>
#include <string>
#include <string_view>

// What there is to know about file descriptors that have run out.

namespace tinkxx::net {

/// Whether a system call failed with `code` since the process, or the system, has no descriptor.
[[nodiscard]] bool is_descriptor_shortage(int code) noexcept;
/// Whether none can be had at this moment. Any thread.
[[nodiscard]] bool descriptors_are_short() noexcept;

/// Tells of a shortage once for all connections of a runtime, and again if it lasts. Loop thread
/// only.
class ShortageNote {
public:
    static constexpr std::chrono::minutes between_lines{1};

    /// The line to be logged now, if it is time for one.
    [[nodiscard]] std::optional<std::string> line(std::string_view failure, TimePoint now);

private:
    std::optional<TimePoint> said_{};
};

}  // namespace tinkxx::net
