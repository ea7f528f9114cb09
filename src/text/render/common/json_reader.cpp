// The reader follows the scanner of CPython step by step, so that it stops at the same place with
// the same words: these reach the user as what is wrong with a tool call.
#include "text/render/common/characters.hpp"
#include "text/render/common/json.hpp"
#include "text/unicode/utf8.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_map>

namespace tinkxx::text::render {

namespace {

constexpr std::size_t deepest_json = 900;
constexpr std::size_t longest_integer = 4300;
constexpr std::size_t indexed_members = 16;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

int hex_value(char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool is_high(char32_t unit) { return unit >= 0xd800 && unit <= 0xdbff; }
bool is_low(char32_t unit) { return unit >= 0xdc00 && unit <= 0xdfff; }

// An object under construction; large ones find their members by a table.
class Members {
public:
    void set(std::string name, Json value) {
        if (names_.empty() && object_.members().size() < indexed_members) {
            object_.set(std::move(name), std::move(value));
            return;
        }
        if (names_.empty()) {
            for (auto const& member : object_.members()) names_.emplace(member.first, 0);
        }
        if (names_.emplace(name, 0).second) {
            object_.append(std::move(name), std::move(value));
        } else {
            object_.set(std::move(name), std::move(value));
        }
    }
    [[nodiscard]] Json take() { return std::move(object_); }

private:
    Json object_{Json::object()};
    std::unordered_map<std::string, int> names_{};
};

class JsonReader {
public:
    explicit JsonReader(std::string_view text) : text_{text} {}

    JsonRead read() {
        constexpr std::string_view mark = "\xef\xbb\xbf";
        if (text_.starts_with(mark)) {
            fail("Unexpected UTF-8 BOM (decode using utf-8-sig)", 0);
            return finish();
        }
        skip_blanks();
        auto value = any(0);
        if (!failed_) {
            skip_blanks();
            if (at_ != text_.size()) fail("Extra data", at_);
        }
        if (!failed_) result_.value = std::move(value);
        return finish();
    }

private:
    JsonRead finish() { return std::move(result_); }

    Json fail(std::string_view what, std::size_t at) {
        if (failed_) return {};
        failed_ = true;
        auto const before = text_.substr(0, at);
        auto const line = count(before, "\n") + 1;
        auto const newline = before.rfind('\n');
        auto const start = newline == std::string_view::npos ? 0 : newline + 1;
        result_.error = std::string{what} + ": line " + std::to_string(line) + " column " +
                        std::to_string(count_characters(before.substr(start)) + 1) + " (char " +
                        std::to_string(count_characters(before)) + ")";
        return {};
    }

    [[nodiscard]] bool at(char c) const { return at_ < text_.size() && text_[at_] == c; }
    [[nodiscard]] bool digit_at(std::size_t place) const {
        return place < text_.size() && is_digit(text_[place]);
    }

    void skip_blanks() {
        while (at(' ') || at('\t') || at('\n') || at('\r')) ++at_;
    }

    bool word(std::string_view expected) {
        if (!text_.substr(at_).starts_with(expected)) return false;
        at_ += expected.size();
        return true;
    }

    Json any(std::size_t depth) {
        if (at_ >= text_.size()) return fail("Expecting value", at_);
        if (depth > deepest_json) return fail("Lists and objects are nested too deeply", at_);
        switch (text_[at_]) {
            case '"':
                ++at_;
                return Json::string(string());
            case '{':
                ++at_;
                return object(depth);
            case '[':
                ++at_;
                return array(depth);
            default:
                return scalar();
        }
    }

    Json scalar() {
        constexpr auto infinity = std::numeric_limits<double>::infinity();
        if (word("null")) return {};
        if (word("true")) return Json::boolean(true);
        if (word("false")) return Json::boolean(false);
        if (word("NaN")) return Json::real(std::numeric_limits<double>::quiet_NaN());
        if (word("Infinity")) return Json::real(infinity);
        if (word("-Infinity")) return Json::real(-infinity);
        return number();
    }

    Json number() {
        auto const start = at_;
        auto end = at_ + (at('-') ? 1 : 0);
        if (!digit_at(end)) return fail("Expecting value", start);
        if (text_[end] == '0') {
            ++end;
        } else {
            while (digit_at(end)) ++end;
        }
        bool real = false;
        if (end + 1 < text_.size() && text_[end] == '.' && digit_at(end + 1)) {
            real = true;
            ++end;
            while (digit_at(end)) ++end;
        }
        if (end + 1 < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
            auto power = end + 1;
            if (power + 1 < text_.size() && (text_[power] == '+' || text_[power] == '-')) ++power;
            auto const digits = power;
            while (digit_at(power)) ++power;
            if (power > digits) {
                real = true;
                end = power;
            }
        }
        at_ = end;
        auto const text = text_.substr(start, end - start);
        if (real) return Json::real(real_value(text));
        if (text.size() > longest_integer) return fail("Integer with too many digits", start);
        return Json::integer(std::string{text});
    }

    static double real_value(std::string_view text) {
        double out = 0;
        auto const read = std::from_chars(text.data(), text.data() + text.size(), out);
        if (read.ec != std::errc::result_out_of_range) return out;
        // What is too small is zero, what is too large infinite, with the sign that stands there.
        auto const e = text.find_first_of("eE");
        bool const small = e != std::string_view::npos
                               ? text[e + 1] == '-'
                               : text.starts_with("0") || text.starts_with("-0");
        auto const size = small ? 0.0 : std::numeric_limits<double>::infinity();
        return text.front() == '-' ? -size : size;
    }

    Json object(std::size_t depth) {
        Members members;
        skip_blanks();
        while (!at('}')) {
            if (!at('"')) return fail("Expecting property name enclosed in double quotes", at_);
            ++at_;
            auto name = string();
            if (failed_) return {};
            skip_blanks();
            if (!at(':')) return fail("Expecting ':' delimiter", at_);
            ++at_;
            skip_blanks();
            auto value = any(depth + 1);
            if (failed_) return {};
            members.set(std::move(name), std::move(value));
            skip_blanks();
            if (at('}')) break;
            if (!at(',')) return fail("Expecting ',' delimiter", at_);
            ++at_;
            skip_blanks();
            if (!at('"')) return fail("Expecting property name enclosed in double quotes", at_);
        }
        ++at_;
        return members.take();
    }

    Json array(std::size_t depth) {
        auto out = Json::array();
        skip_blanks();
        if (at(']')) {
            ++at_;
            return out;
        }
        while (true) {
            auto value = any(depth + 1);
            if (failed_) return {};
            out.push(std::move(value));
            skip_blanks();
            if (at(']')) break;
            if (!at(',')) return fail("Expecting ',' delimiter", at_);
            ++at_;
            skip_blanks();
        }
        ++at_;
        return out;
    }

    // From behind the opening quote.
    std::string string() {
        auto const quote = at_ - 1;
        std::string out;
        while (true) {
            auto const start = at_;
            while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\') {
                if (static_cast<unsigned char>(text_[at_]) < 0x20) {
                    fail("Invalid control character at", at_);
                    return out;
                }
                ++at_;
            }
            out += text_.substr(start, at_ - start);
            if (at('"')) {
                ++at_;
                return out;
            }
            if (at_ + 1 >= text_.size()) {
                fail("Unterminated string starting at", quote);
                return out;
            }
            ++at_;
            if (!escape(out)) return out;
        }
    }

    // From behind the backslash.
    bool escape(std::string& out) {
        constexpr std::string_view letters = "\"\\/bfnrt";
        constexpr std::string_view meant = "\"\\/\b\f\n\r\t";
        auto const c = text_[at_];
        if (c != 'u') {
            auto const place = letters.find(c);
            if (place == std::string_view::npos) {
                fail("Invalid \\escape", at_ - 1);
                return false;
            }
            out += meant[place];
            ++at_;
            return true;
        }
        ++at_;
        char32_t code = 0;
        if (!unit(at_, code)) {
            fail("Invalid \\uXXXX escape", at_ - 1);
            return false;
        }
        at_ += 4;
        return second_unit(code, out);
    }

    // A second escape that makes a pair with the first.
    bool second_unit(char32_t code, std::string& out) {
        if (is_high(code) && at_ + 6 < text_.size() && text_.substr(at_).starts_with("\\u")) {
            char32_t low = 0;
            if (!unit(at_ + 2, low)) {
                fail("Invalid \\uXXXX escape", at_ + 1);
                return false;
            }
            if (is_low(low)) {
                code = 0x10000 + ((code - 0xd800) << 10U) + (low - 0xdc00);
                at_ += 6;
            }
        }
        append_utf8(out, code);
        return true;
    }

    // Four hex digits, behind which at least one character must follow.
    bool unit(std::size_t place, char32_t& code) const {
        if (place + 4 >= text_.size()) return false;
        for (std::size_t i = 0; i < 4; ++i) {
            auto const digit = hex_value(text_[place + i]);
            if (digit < 0) return false;
            code = code * 16 + static_cast<char32_t>(digit);
        }
        return true;
    }

    std::string_view text_;
    std::size_t at_{0};
    bool failed_{false};
    JsonRead result_{};
};

}  // namespace

JsonRead read_json(std::string_view text) { return JsonReader{text}.read(); }

}  // namespace tinkxx::text::render
