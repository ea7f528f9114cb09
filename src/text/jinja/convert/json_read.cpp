#include "text/jinja/convert/json_text.hpp"
#include "text/jinja/convert/numbers.hpp"
#include "text/unicode/utf8.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace tinkxx::text::jinja {
namespace {

constexpr int deepest_read = 200;

/// Whether one of the eight bytes ends a run of plain characters: a quote, a backslash, a control.
bool has_special(std::uint64_t word) noexcept {
    constexpr std::uint64_t ones = 0x0101010101010101U;
    constexpr std::uint64_t highs = 0x8080808080808080U;
    auto const quotes = word ^ (ones * '"');
    auto const slashes = word ^ (ones * '\\');
    auto const found = ((quotes - ones) & ~quotes) | ((slashes - ones) & ~slashes) |
                       ((word - ones * 0x20U) & ~word);
    return (found & highs) != 0;
}

class JsonReader {
public:
    JsonReader(Arena& arena, std::string_view json, std::string_view what)
        : arena_{arena}, json_{json}, what_{what} {}

    Value run() {
        if (auto const bad = find_invalid_utf8(json_); bad != json_.size()) {
            at_ = bad;
            fail("is not valid UTF-8");
        }
        auto const made = value(0);
        skip_space();
        if (at_ != json_.size()) fail("has something behind its end");
        return made;
    }

private:
    [[noreturn]] void fail(std::string_view problem) const {
        throw Failure{Failure::Kind::input, std::string{what_} + " " + std::string{problem} +
                                                " (at byte " + std::to_string(at_) + ")"};
    }

    [[nodiscard]] char peek() const noexcept { return at_ < json_.size() ? json_[at_] : '\0'; }

    void skip_space() noexcept {
        while (at_ < json_.size() && (json_[at_] == ' ' || json_[at_] == '\n' ||
                                      json_[at_] == '\t' || json_[at_] == '\r')) {
            ++at_;
        }
    }

    bool skip(char wanted) noexcept {
        skip_space();
        if (peek() != wanted) return false;
        ++at_;
        return true;
    }

    bool word(std::string_view word) noexcept {
        if (!json_.substr(at_).starts_with(word)) return false;
        at_ += word.size();
        return true;
    }

    Value value(int depth) {
        if (depth > deepest_read) fail("is nested more than 200 levels deep");
        skip_space();
        switch (peek()) {
            case '{':
                return object(depth);
            case '[':
                return array(depth);
            case '"':
                return string();
            case 't':
                if (word("true")) return boolean_value(true);
                break;
            case 'f':
                if (word("false")) return boolean_value(false);
                break;
            case 'n':
                if (word("null")) return none_value();
                break;
            case 'N':
                if (word("NaN")) return real_value(std::numeric_limits<double>::quiet_NaN());
                break;
            case 'I':
                if (word("Infinity")) return real_value(std::numeric_limits<double>::infinity());
                break;
            default:
                return number();
        }
        fail("is not valid JSON");
    }

    Value number() {
        auto const begin = at_;
        if (word("-Infinity")) return real_value(-std::numeric_limits<double>::infinity());
        if (peek() == '-') ++at_;
        auto const digits = [this] {
            auto const first = at_;
            while (peek() >= '0' && peek() <= '9') ++at_;
            return at_ - first;
        };
        auto const first = at_;
        auto const whole = digits();
        if (whole == 0 || (whole > 1 && json_[first] == '0')) fail("is not valid JSON");
        bool real = false;
        if (peek() == '.') {
            ++at_;
            real = true;
            if (digits() == 0) fail("has a number without digits behind its point");
        }
        if (peek() == 'e' || peek() == 'E') {
            ++at_;
            real = true;
            if (peek() == '+' || peek() == '-') ++at_;
            if (digits() == 0) fail("has a number without digits in its exponent");
        }
        auto const text = json_.substr(begin, at_ - begin);
        return real ? real_value(parse_real(text).value_or(0)) : parse_integer(arena_, text);
    }

    Value string() {
        auto const begin = ++at_;
        skip_plain();
        if (peek() == '"') {
            auto const text = json_.substr(begin, at_ - begin);
            ++at_;
            return string_value(text);
        }
        std::string text{json_.substr(begin, at_ - begin)};
        while (peek() != '"') {
            if (at_ >= json_.size()) fail("has a string that does not end");
            if (json_[at_] == '\\') {
                ++at_;
                escape(text);
            } else {
                // Python's reader is strict about controls.
                fail("has a control character in a string; write \\u00XX");
            }
            auto const plain = at_;
            skip_plain();
            text += json_.substr(plain, at_ - plain);
        }
        ++at_;
        return text_value(arena_, text);
    }

    /// Up to a quote, a backslash or a control.
    void skip_plain() noexcept {
        while (json_.size() - at_ >= 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, json_.data() + at_, sizeof word);
            if (has_special(word)) break;
            at_ += 8;
        }
        while (at_ < json_.size()) {
            auto const c = json_[at_];
            if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20U) break;
            ++at_;
        }
    }

    void escape(std::string& text) {
        constexpr std::string_view letters = "\"\\/bfnrt";
        constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
        auto const letter = peek();
        ++at_;
        if (letter == 'u') {
            append_utf8(text, code_point());
            return;
        }
        auto const which = letters.find(letter);
        if (letter == '\0' || which == std::string_view::npos) fail("has a wrong escape");
        text += meanings[which];
    }

    char32_t unit() {
        char32_t code = 0;
        for (int i = 0; i < 4; ++i, ++at_) {
            auto const c = peek();
            char32_t digit = 16;
            if (c >= '0' && c <= '9') digit = static_cast<char32_t>(c - '0');
            if (c >= 'a' && c <= 'f') digit = static_cast<char32_t>(c - 'a' + 10);
            if (c >= 'A' && c <= 'F') digit = static_cast<char32_t>(c - 'A' + 10);
            if (digit == 16) fail("has a wrong \\u escape");
            code = code * 16 + digit;
        }
        return code;
    }

    char32_t code_point() {
        auto const first = unit();
        if (first < 0xD800U || first > 0xDFFFU) return first;
        if (first < 0xDC00U && word("\\u")) {
            auto const second = unit();
            if (second >= 0xDC00U && second <= 0xDFFFU) {
                return 0x10000U + ((first - 0xD800U) << 10U) + (second - 0xDC00U);
            }
        }
        fail("has half of a surrogate pair, which is no character");
    }

    Value array(int depth) {
        ++at_;
        auto const mark = values_.size();
        if (!skip(']')) {
            do values_.push_back(value(depth + 1));
            while (skip(','));
            if (!skip(']')) fail("has an array that does not end");
        }
        auto const count = values_.size() - mark;
        auto* const items = arena_.array<Value>(count);
        std::copy_n(values_.data() + mark, count, items);
        values_.resize(mark);
        return list_value(items, count);
    }

    Value object(int depth) {
        ++at_;
        auto const mark = entries_.size();
        if (!skip('}')) {
            do {
                skip_space();
                if (peek() != '"') fail("has an object whose key is no string");
                auto const key = string();
                if (!skip(':')) fail("has a key without a value");
                auto const member = value(depth + 1);
                entries_.push_back({key, member});
            } while (skip(','));
            if (!skip('}')) fail("has an object that does not end");
        }
        auto const count = entries_.size() - mark;
        auto* const entries = arena_.array<DictData::Entry>(count);
        std::copy_n(entries_.data() + mark, count, entries);
        entries_.resize(mark);
        return make_dict(arena_, entries, count);
    }

    Arena& arena_;
    std::string_view json_;
    std::string_view what_;
    std::size_t at_{0};
    std::vector<Value> values_;
    std::vector<DictData::Entry> entries_;
};

}  // namespace

Value read_json(Arena& arena, std::string_view json, std::string_view what) {
    return JsonReader{arena, json, what}.run();
}

}  // namespace tinkxx::text::jinja
