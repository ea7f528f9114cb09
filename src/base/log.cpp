#include <tinkxx/log.hpp>

#include <array>
#include <cstdio>
#include <string>
#include <utility>

namespace tinkxx {
namespace {

constexpr std::array<std::pair<std::string_view, LogLevel>, 6> words{{
    {"debug", LogLevel::debug},
    {"info", LogLevel::info},
    {"warn", LogLevel::warning},
    {"warning", LogLevel::warning},
    {"error", LogLevel::error},
    {"off", LogLevel::off},
}};

bool same_word(std::string_view given, std::string_view lower) noexcept {
    if (given.size() != lower.size()) return false;
    for (std::size_t i = 0; i < given.size(); ++i) {
        auto const c = given[i];
        if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c) != lower[i]) return false;
    }
    return true;
}

}  // namespace

std::string_view to_string(LogLevel level) noexcept {
    switch (level) {
        case LogLevel::debug:
            return "debug";
        case LogLevel::info:
            return "info";
        case LogLevel::warning:
            return "warning";
        case LogLevel::error:
            return "error";
        case LogLevel::off:
            return "off";
    }
    return "unknown";
}

std::optional<LogLevel> parse_log_level(std::string_view word) noexcept {
    for (auto const& [name, level] : words) {
        if (same_word(word, name)) return level;
    }
    return std::nullopt;
}

LogSink stderr_log() {
    return [](LogLevel level, std::string_view line) {
        std::string text{"tinkxx: "};
        text.append(to_string(level)).append(": ");
        // A line break inside would make two lines of it, the second without its origin.
        for (auto const c : line) text.push_back(c == '\n' || c == '\r' ? ' ' : c);
        text.push_back('\n');
        std::fwrite(text.data(), 1, text.size(), stderr);  // one call: lines never interleave
    };
}

LogSink silent_log() {
    return [](LogLevel, std::string_view) {};
}

}  // namespace tinkxx
