#pragma once

#include <tinkxx/log.hpp>
#include <tinkxx/transport.hpp>

#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace tinkxx::service {

/// Decides which deprecation notes of the server are worth a log line: each text at most once
/// per hour (R-RETRY-76).
class DeprecationNotes {
public:
    static constexpr std::chrono::hours pause{1};
    /// Texts that are remembered; a server that makes up new ones cannot fill our memory.
    static constexpr std::size_t capacity = 256;

    struct Note {
        LogLevel level{LogLevel::warning};
        std::string text{};
    };

    [[nodiscard]] std::optional<Note> read(Headers const& headers, TimePoint now);

private:
    std::map<std::string, TimePoint, std::less<>> told_{};
};

}  // namespace tinkxx::service
