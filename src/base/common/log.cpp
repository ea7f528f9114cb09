#include <tinkxx/log.hpp>

#include "base/common/ascii.hpp"
#include "base/common/utf8.hpp"

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

/// How many bytes the character at the front has; 0 if it is not UTF-8, or not to be shown.
std::size_t shown_bytes(std::string_view text) noexcept {
    auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    if (byte(0) < 0x20 || byte(0) == 0x7f) return 0;
    auto const size = base::utf8_character(text.data(), text.data() + text.size());
    bool const control = byte(0) == 0xc2 && size == 2 && byte(1) < 0xa0;
    return control ? 0 : size;
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
        if (base::equal_in_any_case(word, name)) return level;
    }
    return std::nullopt;
}

std::string one_line(std::string_view text) {
    std::string line;
    line.reserve(text.size());
    while (!text.empty()) {
        auto const size = shown_bytes(text);
        if (size > 0) {
            line.append(text, 0, size);
        } else {
            bool const blank = text[0] == '\n' || text[0] == '\r' || text[0] == '\t';
            line.push_back(blank ? ' ' : '?');
        }
        text.remove_prefix(size > 0 ? size : 1);
    }
    return line;
}

LogSink stderr_log() {
    return [](LogLevel level, std::string_view line) {
        std::string text{"tinkxx: "};
        text.append(to_string(level)).append(": ").append(one_line(line)).push_back('\n');
        std::fwrite(text.data(), 1, text.size(), stderr);  // one call: lines never interleave
    };
}

LogSink silent_log() {
    return [](LogLevel, std::string_view) {};
}

}  // namespace tinkxx
