#include "text/jinja/syntax/lexer.hpp"

#include "text/python/characters.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace tinkxx::text::jinja {
namespace {

bool is_digit_char(char c) noexcept { return c >= '0' && c <= '9'; }

/// What stands at the beginning or the end of a tag to control the white space beside it.
enum class Sign : std::uint8_t { none, strip, keep };

Sign sign_of(char c) noexcept {
    if (c == '-') return Sign::strip;
    return c == '+' ? Sign::keep : Sign::none;
}

std::size_t skip_space(std::string_view text, std::size_t at) noexcept {
    while (at < text.size()) {
        auto next = at;
        if (!python::is_space(next_character(text, next))) break;
        at = next;
    }
    return at;
}

std::string_view strip_right(std::string_view text) noexcept {
    auto end = text.size();
    while (end > 0) {
        auto const before = previous_character(text, end);
        auto at = before;
        if (!python::is_space(next_character(text, at))) break;
        end = before;
    }
    return text.substr(0, end);
}

constexpr std::array<std::pair<std::string_view, TokenKind>, 26> operators{{
    {"**", TokenKind::power},       {"//", TokenKind::floor_divide},
    {"==", TokenKind::eq},          {"!=", TokenKind::ne},
    {">=", TokenKind::ge},          {"<=", TokenKind::le},
    {"+", TokenKind::add},          {"-", TokenKind::subtract},
    {"/", TokenKind::divide},       {"*", TokenKind::multiply},
    {"%", TokenKind::modulo},       {"~", TokenKind::tilde},
    {"[", TokenKind::left_bracket}, {"]", TokenKind::right_bracket},
    {"(", TokenKind::left_paren},   {")", TokenKind::right_paren},
    {"{", TokenKind::left_brace},   {"}", TokenKind::right_brace},
    {">", TokenKind::gt},           {"<", TokenKind::lt},
    {"=", TokenKind::assign},       {".", TokenKind::dot},
    {":", TokenKind::colon},        {"|", TokenKind::pipe},
    {",", TokenKind::comma},        {";", TokenKind::semicolon},
}};

class Lexer {
public:
    Lexer(std::string_view source, Arena& arena) : arena_{arena} { normalize(source); }

    std::vector<Token> run() {
        while (at_ < source_.size()) root();
        add(TokenKind::end, {});
        return std::move(tokens_);
    }

private:
    [[noreturn]] void fail(std::string message) const {
        throw Failure{Failure::Kind::syntax, std::move(message), line_};
    }

    void add(TokenKind kind, std::string_view text) { tokens_.push_back({kind, line_, text}); }

    /// One kind of line end; the last one of the template does not count.
    void normalize(std::string_view source) {
        if (source.find('\r') != std::string_view::npos) {
            auto* const to = arena_.bytes(source.size());
            std::size_t size = 0;
            for (std::size_t i = 0; i < source.size(); ++i) {
                if (source[i] == '\r') {
                    to[size++] = '\n';
                    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
                } else {
                    to[size++] = source[i];
                }
            }
            source_ = {to, size};
        } else {
            source_ = arena_.copy(source);
        }
        if (source_.ends_with('\n')) source_.remove_suffix(1);
    }

    void count_lines(std::string_view text) {
        line_ += static_cast<std::uint32_t>(std::count(text.begin(), text.end(), '\n'));
    }

    /// Goes on behind `end`, which ends a tag.
    void advance(std::size_t end) {
        auto const passed = source_.substr(at_, end - at_);
        count_lines(passed);
        if (!passed.empty()) line_starts_ = passed.back() == '\n';
        at_ = end;
    }

    /// The text before a tag, less the white space that the tag takes away.
    void add_data(std::string_view text, Sign sign, bool block) {
        auto kept = text;
        if (sign == Sign::strip) {
            kept = strip_right(text);
        } else if (sign == Sign::none && block) {
            auto const line = text.rfind('\n') == std::string_view::npos ? 0 : text.rfind('\n') + 1;
            if ((line > 0 || line_starts_) && line < text.size() &&
                skip_space(text, line) == text.size()) {
                kept = text.substr(0, line);
            }
        }
        if (!kept.empty()) add(TokenKind::data, kept);
        count_lines(text);
    }

    void root() {
        auto begin = at_;
        while (true) {
            begin = source_.find('{', begin);
            if (begin == std::string_view::npos || begin + 1 >= source_.size()) {
                add(TokenKind::data, source_.substr(at_));
                at_ = source_.size();
                return;
            }
            auto const second = source_[begin + 1];
            if (second == '{' || second == '%' || second == '#') break;
            ++begin;
        }
        auto const text = source_.substr(at_, begin - at_);
        auto const sign = begin + 2 < source_.size() ? sign_of(source_[begin + 2]) : Sign::none;
        auto const inside = begin + (sign == Sign::none ? 2U : 3U);
        auto const second = source_[begin + 1];
        add_data(text, sign, second != '{');
        at_ = inside;
        if (second == '#') {
            comment();
        } else if (second == '{') {
            add(TokenKind::variable_begin, {});
            tag(TokenKind::variable_end);
        } else if (auto const raw_end = raw_begin(inside); raw_end != std::string_view::npos) {
            advance(raw_end);
            raw();
        } else {
            add(TokenKind::block_begin, {});
            tag(TokenKind::block_end);
        }
    }

    void comment() {
        auto const close = source_.find("#}", at_);
        if (close == std::string_view::npos) fail("Missing end of comment tag");
        auto const sign = close > at_ ? sign_of(source_[close - 1]) : Sign::none;
        advance(tag_end(close + 2, sign, true));
    }

    /// Where the template goes on behind a tag whose last character is before `end`.
    std::size_t tag_end(std::size_t end, Sign sign, bool trims_line) const {
        if (sign == Sign::strip) return skip_space(source_, end);
        if (sign == Sign::none && trims_line && end < source_.size() && source_[end] == '\n') {
            return end + 1;
        }
        return end;
    }

    /// Behind `raw %}`, if that stands there.
    std::size_t raw_begin(std::size_t at) const {
        at = skip_space(source_, at);
        if (!source_.substr(at).starts_with("raw")) return std::string_view::npos;
        at = skip_space(source_, at + 3);
        if (source_.substr(at).starts_with("-%}")) return skip_space(source_, at + 3);
        return source_.substr(at).starts_with("%}") ? at + 2 : std::string_view::npos;
    }

    void raw() {
        for (auto begin = source_.find("{%", at_); begin != std::string_view::npos;
             begin = source_.find("{%", begin + 1)) {
            auto at = begin + 2;
            auto const sign = at < source_.size() ? sign_of(source_[at]) : Sign::none;
            at = skip_space(source_, at + (sign == Sign::none ? 0 : 1));
            if (!source_.substr(at).starts_with("endraw")) continue;
            at = skip_space(source_, at + 6);
            auto const end_sign = at < source_.size() ? sign_of(source_[at]) : Sign::none;
            if (end_sign != Sign::none) ++at;
            if (!source_.substr(at).starts_with("%}")) continue;
            add_data(source_.substr(at_, begin - at_), sign, true);
            at_ = begin;
            advance(tag_end(at + 2, end_sign, true));
            return;
        }
        fail("Missing end of raw directive");
    }

    /// Whether the tag ends here; then goes on behind it.
    bool ends(TokenKind end) {
        auto const rest = source_.substr(at_);
        bool const block = end == TokenKind::block_end;
        std::string_view const close = block ? "%}" : "}}";
        auto sign = rest.empty() ? Sign::none : sign_of(rest.front());
        if (sign == Sign::keep && !block) sign = Sign::none;
        auto const skipped = sign == Sign::none ? 0U : 1U;
        if (!rest.substr(std::min<std::size_t>(skipped, rest.size())).starts_with(close)) {
            return false;
        }
        add(end, {});
        advance(tag_end(at_ + skipped + 2, sign, block));
        return true;
    }

    void tag(TokenKind end) {
        open_.clear();
        while (at_ < source_.size()) {
            if (open_.empty() && ends(end)) return;
            auto const behind = skip_space(source_, at_);
            if (behind != at_) {
                advance(behind);
                continue;
            }
            if (!number() && !name() && !string() && !symbol()) {
                auto next = at_;
                (void)next_character(source_, next);
                fail("unexpected char '" + std::string{source_.substr(at_, next - at_)} + "'");
            }
        }
    }

    /// Behind digits that may be separated by single underscores; `at` if there are none.
    std::size_t skip_digits(std::size_t at) const {
        auto const begin = at;
        while (at < source_.size()) {
            if (is_digit_char(source_[at])) {
                ++at;
            } else if (source_[at] == '_' && at > begin && at + 1 < source_.size() &&
                       is_digit_char(source_[at + 1])) {
                ++at;
            } else {
                break;
            }
        }
        return at;
    }

    bool number() {
        if (!is_digit_char(source_[at_])) return false;
        auto const digits = skip_digits(at_);
        auto end = digits;
        if (at_ == 0 || source_[at_ - 1] != '.') {
            if (end + 1 < source_.size() && source_[end] == '.' &&
                is_digit_char(source_[end + 1])) {
                end = skip_digits(end + 1);
            }
            end = exponent_end(end);
        }
        if (end != digits) {
            add(TokenKind::real, source_.substr(at_, end - at_));
        } else {
            end = integer_end(digits);
            add(TokenKind::integer, source_.substr(at_, end - at_));
        }
        at_ = end;
        return true;
    }

    std::size_t exponent_end(std::size_t at) const {
        if (at >= source_.size() || (source_[at] != 'e' && source_[at] != 'E')) return at;
        auto digits = at + 1;
        if (digits < source_.size() && (source_[digits] == '+' || source_[digits] == '-')) ++digits;
        auto const end = skip_digits(digits);
        return end == digits ? at : end;
    }

    std::size_t integer_end(std::size_t digits) const {
        if (source_[at_] != '0') return digits;
        auto const base = at_ + 1 < source_.size() ? source_[at_ + 1] | 0x20 : 0;
        auto const belongs = [base](char c) {
            if (base == 'b') return c == '0' || c == '1';
            if (base == 'o') return c >= '0' && c <= '7';
            return is_digit_char(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
        };
        if (base == 'b' || base == 'o' || base == 'x') {
            auto end = at_ + 2;
            while (end < source_.size() &&
                   (belongs(source_[end]) || (source_[end] == '_' && end + 1 < source_.size() &&
                                              belongs(source_[end + 1])))) {
                ++end;
            }
            if (end > at_ + 2) return end;
        }
        // A decimal number begins with no zero, unless it is one.
        auto end = at_ + 1;
        while (end < digits && (source_[end] == '0' || source_[end] == '_')) ++end;
        return end;
    }

    bool name() {
        auto at = at_;
        auto code = next_character(source_, at);
        if (!python::continues_identifier(code)) return false;
        if (!python::starts_identifier(code)) fail("Invalid character in identifier");
        while (at < source_.size()) {
            auto next = at;
            code = next_character(source_, next);
            if (!python::continues_identifier(code)) break;
            at = next;
        }
        add(TokenKind::name, source_.substr(at_, at - at_));
        at_ = at;
        return true;
    }

    bool string() {
        auto const quote = source_[at_];
        if (quote != '"' && quote != '\'') return false;
        auto end = at_ + 1;
        bool escapes = false;
        while (end < source_.size() && source_[end] != quote) {
            if (source_[end] == '\\') {
                escapes = true;
                ++end;
            }
            ++end;
        }
        if (end >= source_.size()) return false;  // not closed: an unexpected character
        auto const inside = source_.substr(at_ + 1, end - at_ - 1);
        add(TokenKind::string, escapes ? unescaped(inside) : inside);
        count_lines(inside);
        at_ = end + 1;
        return true;
    }

    std::string_view unescaped(std::string_view text) {
        std::string plain;
        for (std::size_t at = 0; at < text.size();) {
            if (text[at] != '\\') {
                plain += text[at++];
                continue;
            }
            ++at;
            escape(text, at, plain);
        }
        return arena_.copy(plain);
    }

    /// What stands behind a backslash.
    void escape(std::string_view text, std::size_t& at, std::string& plain) {
        constexpr std::string_view letters = "\\'\"abfnrtv";
        constexpr std::string_view meanings = "\\'\"\a\b\f\n\r\t\v";
        auto const letter = text[at];
        if (auto const which = letters.find(letter); which != std::string_view::npos) {
            plain += meanings[which];
            ++at;
        } else if (letter == '\n') {
            ++at;
        } else if (letter >= '0' && letter <= '7') {
            auto end = at;
            while (end < text.size() && end < at + 3 && text[end] >= '0' && text[end] <= '7') ++end;
            append_code(text.substr(at, end - at), 8, plain);
            at = end;
        } else if (letter == 'x' || letter == 'u' || letter == 'U') {
            auto const size = letter == 'x' ? 2U : (letter == 'u' ? 4U : 8U);
            auto const digits = text.substr(at + 1, size);
            bool const good =
                digits.size() == size &&
                digits.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
            if (!good) fail("truncated \\" + std::string{letter} + " escape");
            append_code(digits, 16, plain);
            at += 1 + size;
        } else if (letter == 'N') {
            fail("characters by name (\\N{...}) are not supported; write \\uXXXX");
        } else {
            unknown_escape(text, at, plain);
        }
    }

    /// Python keeps the backslash; a character beyond ASCII becomes the digits of its code.
    static void unknown_escape(std::string_view text, std::size_t& at, std::string& plain) {
        plain += '\\';
        auto const code = next_character(text, at);
        if (code < 0x80U) {
            plain += static_cast<char>(code);
            return;
        }
        constexpr std::string_view hex = "0123456789abcdef";
        auto const digits = code < 0x100U ? 2 : (code < 0x10000U ? 4 : 8);
        plain += code < 0x100U ? 'x' : (code < 0x10000U ? 'u' : 'U');
        for (int i = digits - 1; i >= 0; --i) {
            plain += hex[(code >> static_cast<unsigned>(i * 4)) & 0xFU];
        }
    }

    void append_code(std::string_view digits, int base, std::string& plain) {
        auto const code = static_cast<char32_t>(std::stoul(std::string{digits}, nullptr, base));
        if (code > 0x10FFFFU || (code >= 0xD800U && code < 0xE000U)) {
            fail("the escape \\" + std::string{digits} + " is no character");
        }
        append_utf8(plain, code);
    }

    bool symbol() {
        auto const rest = source_.substr(at_);
        auto const* const found = std::find_if(
            operators.begin(), operators.end(),
            [rest](auto const& candidate) { return rest.starts_with(candidate.first); });
        if (found == operators.end()) return false;
        balance(found->second, found->first);
        add(found->second, found->first);
        at_ += found->first.size();
        return true;
    }

    void balance(TokenKind kind, std::string_view text) {
        if (kind == TokenKind::left_brace) open_.push_back('}');
        if (kind == TokenKind::left_paren) open_.push_back(')');
        if (kind == TokenKind::left_bracket) open_.push_back(']');
        if (kind != TokenKind::right_brace && kind != TokenKind::right_paren &&
            kind != TokenKind::right_bracket) {
            return;
        }
        if (open_.empty()) fail("unexpected '" + std::string{text} + "'");
        if (open_.back() != text.front()) {
            fail("unexpected '" + std::string{text} + "', expected '" + open_.back() + "'");
        }
        open_.pop_back();
    }

    Arena& arena_;
    std::string_view source_;
    std::size_t at_{0};
    std::uint32_t line_{1};
    bool line_starts_{true};
    std::string open_;
    std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source, Arena& arena) {
    return Lexer{source, arena}.run();
}

std::string_view describe(Token const& token) noexcept {
    switch (token.kind) {
        case TokenKind::end:
            return "end of template";
        case TokenKind::data:
            return "template data / text";
        case TokenKind::variable_begin:
            return "begin of print statement";
        case TokenKind::variable_end:
            return "end of print statement";
        case TokenKind::block_begin:
            return "begin of statement block";
        case TokenKind::block_end:
            return "end of statement block";
        case TokenKind::string:
            return "string";
        case TokenKind::integer:
            return "integer";
        case TokenKind::real:
            return "float";
        default:
            return token.text;
    }
}

}  // namespace tinkxx::text::jinja
