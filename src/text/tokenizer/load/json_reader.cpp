#include "text/tokenizer/load/json_reader.hpp"

#include "text/errors/refuse.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

namespace tinkxx::text {
namespace {

/// Objects and arrays within each other, in what is read over.
constexpr int deepest = 256;

constexpr bool is_json_space(char c) noexcept {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

constexpr std::uint64_t every_byte(unsigned char byte) noexcept {
    return 0x0101010101010101U * byte;
}

/// Not 0 if one of eight bytes is `byte`.
constexpr std::uint64_t has_byte(std::uint64_t word, unsigned char byte) noexcept {
    auto const zero = word ^ every_byte(byte);
    return (zero - every_byte(1)) & ~zero & every_byte(0x80);
}

/// Where the next quote, backslash or control character is.
std::size_t end_of_plain(std::string_view text, std::size_t at) noexcept {
    std::uint64_t word = 0;
    while (at + sizeof word <= text.size()) {
        std::memcpy(&word, text.data() + at, sizeof word);
        auto const control = (word - every_byte(0x20)) & ~word & every_byte(0x80);
        if ((has_byte(word, '"') | has_byte(word, '\\') | control) != 0) break;
        at += sizeof word;
    }
    while (at < text.size() && text[at] != '"' && text[at] != '\\' &&
           static_cast<unsigned char>(text[at]) >= 0x20) {
        ++at;
    }
    return at;
}

double power_of_ten(int exponent) noexcept {
    auto const text = "1e" + std::to_string(exponent);
    double power = 1;
    std::from_chars(text.data(), text.data() + text.size(), power);
    return power;
}

/// `value` times a power of ten, divided at most once by what a double can hold.
double scaled(double value, std::int64_t exponent) noexcept {
    constexpr int most = 308;
    while (value != 0 && exponent < -most) {
        value /= 1e308;
        exponent += most;
    }
    if (exponent > most) return value == 0 ? 0 : std::numeric_limits<double>::infinity();
    if (exponent < -most) return 0;
    // Exactly rounded, as a table of constants is.
    auto const power = power_of_ten(static_cast<int>(exponent < 0 ? -exponent : exponent));
    return exponent < 0 ? value / power : value * power;
}

}  // namespace

void JsonReader::fail(std::string_view what) const {
    auto const place = "byte " + std::to_string(at_);
    refuse("tokenizer.json: " + std::string{what} + " at " + place +
               (section_.empty() ? "" : " of " + std::string{section_}) +
               "; the file is damaged or of another kind",
           section_.empty() ? place : std::string{section_},
           std::string{text_.substr(std::min(at_, text_.size()), 16)});
}

void JsonReader::skip_space() noexcept {
    while (at_ < text_.size() && is_json_space(text_[at_])) ++at_;
}

char JsonReader::peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonReader::take(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
}

void JsonReader::expect(char c) {
    if (!take(c)) fail(std::string{"expected '"} + c + "'");
}

std::string_view JsonReader::string() {
    expect('"');
    auto const begin = at_;
    at_ = end_of_plain(text_, at_);
    if (at_ < text_.size() && text_[at_] == '"') return text_.substr(begin, at_++ - begin);
    return escaped_string(begin);
}

std::string_view JsonReader::escaped_string(std::size_t begin) {
    buffer_.assign(text_.substr(begin, at_ - begin));
    while (at_ < text_.size() && text_[at_] != '"') {
        if (text_[at_] == '\\') {
            append_escape();
        } else if (static_cast<unsigned char>(text_[at_]) < 0x20) {
            fail("control character in a string");
        } else {
            auto const end = end_of_plain(text_, at_);
            buffer_.append(text_, at_, end - at_);
            at_ = end;
        }
    }
    if (at_ == text_.size()) fail("string without an end");
    ++at_;
    return buffer_;
}

char32_t JsonReader::hex4() {
    if (at_ + 4 > text_.size()) fail("string without an end");
    unsigned value = 0;
    auto const* const begin = text_.data() + at_;
    auto const [end, error] = std::from_chars(begin, begin + 4, value, 16);
    if (error != std::errc{} || end != begin + 4) fail("wrong \\u escape");
    at_ += 4;
    return value;
}

void JsonReader::append_escape() {
    constexpr std::string_view names = "\"\\/bfnrt";
    constexpr std::string_view values = "\"\\/\b\f\n\r\t";
    ++at_;
    auto const c = at_ < text_.size() ? text_[at_++] : '\0';
    if (auto const found = names.find(c); found != std::string_view::npos && c != '\0') {
        buffer_ += values[found];
        return;
    }
    if (c != 'u') fail("unknown escape");
    auto code = hex4();
    if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {
        at_ += 2;
        auto const low = hex4();
        if (low < 0xdc00 || low > 0xdfff) fail("half of a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10U) + (low - 0xdc00);
    }
    if (code >= 0xd800 && code <= 0xdfff) fail("half of a surrogate pair");
    append_utf8(buffer_, code);
}

std::uint32_t JsonReader::unsigned_number() {
    skip_space();
    std::uint32_t value = 0;
    auto const* const begin = text_.data() + at_;
    auto const [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc{}) fail("expected a number from 0 to 4294967295");
    at_ += static_cast<std::size_t>(end - begin);
    if (at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E')) {
        fail("expected a number without a fraction");
    }
    return value;
}

double JsonReader::number() {
    // Not the nearest number, but the one that serde_json makes of the same digits: scores that
    // nearly tie are decided by the last bit.
    skip_space();
    auto const negative = at_ < text_.size() && text_[at_] == '-';
    if (negative) ++at_;
    std::uint64_t digits = 0;
    std::int64_t exponent = 0;
    auto any = false;
    auto full = false;
    auto const read_digits = [&](std::int64_t step, std::int64_t dropped) {
        for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
            auto const digit = static_cast<std::uint64_t>(text_[at_] - '0');
            any = true;
            constexpr auto most = ~std::uint64_t{0};
            full = full || digits > most / 10 || (digits == most / 10 && digit > most % 10);
            if (!full) digits = digits * 10 + digit;
            exponent += full ? dropped : step;
        }
    };
    read_digits(0, 1);
    if (!any) fail("expected a number");
    if (at_ < text_.size() && text_[at_] == '.') {
        ++at_;
        read_digits(-1, 0);
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) exponent += exponent_part();
    auto const value = scaled(static_cast<double>(digits), exponent);
    if (value > std::numeric_limits<double>::max()) fail("number out of range");
    return negative ? -value : value;
}

std::int64_t JsonReader::exponent_part() {
    ++at_;
    if (at_ < text_.size() && text_[at_] == '+') ++at_;
    std::int32_t exponent = 0;
    auto const* const begin = text_.data() + at_;
    auto const [end, error] = std::from_chars(begin, text_.data() + text_.size(), exponent);
    if (error != std::errc{}) fail("expected a number");
    at_ += static_cast<std::size_t>(end - begin);
    return exponent;
}

void JsonReader::skip_string() {
    for (++at_; at_ < text_.size(); ++at_) {
        at_ = end_of_plain(text_, at_);
        if (at_ >= text_.size() || text_[at_] == '"') break;
        if (text_[at_] == '\\') ++at_;
    }
    if (at_ >= text_.size()) fail("string without an end");
    ++at_;
}

std::string_view JsonReader::skip() {
    skip_space();
    auto const begin = at_;
    int depth = 0;
    do {
        auto const c = peek();
        if (c == '"') {
            skip_string();
        } else if (c == '{' || c == '[') {
            if (++depth > deepest) fail("values too deep within each other");
            ++at_;
        } else if (c == '}' || c == ']') {
            if (--depth < 0) fail("unexpected bracket");
            ++at_;
        } else if (c == '\0') {
            fail("unexpected end");
        } else {
            ++at_;
            while (at_ < text_.size() && std::strchr(",]}:\"{[ \n\r\t", text_[at_]) == nullptr)
                ++at_;
        }
    } while (depth > 0);
    return text_.substr(begin, at_ - begin);
}

void JsonReader::expect_end() {
    if (peek() != '\0' || at_ != text_.size()) fail("unexpected text behind the document");
}

}  // namespace tinkxx::text
