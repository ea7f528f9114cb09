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

/// How many bytes the character at the front has; 0 if it is not UTF-8, or not to be shown.
std::size_t shown_bytes(std::string_view text) noexcept {
    auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    auto const first = byte(0);
    if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
    std::size_t const size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
    for (std::size_t i = 1; i < size; ++i) {
        if ((byte(i) & 0xc0U) != 0x80) return 0;
    }
    auto const second = byte(1);
    bool const control = first == 0xc2 && second < 0xa0;
    bool const overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    bool const surrogate = first == 0xed && second >= 0xa0;
    bool const beyond = first == 0xf4 && second >= 0x90;
    return control || overlong || surrogate || beyond ? 0 : size;
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
