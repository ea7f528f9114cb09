#include "text/regex/pattern.hpp"
#include "text/unicode/utf8.hpp"

#include <cctype>
#include <string>
#include <string_view>

namespace tinkxx::text {
namespace {

/// `\s`, `\w` and `\h` mean other characters to PCRE2.
constexpr std::string_view spaces = R"(\s\x{85})";
constexpr std::string_view words = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d})";
constexpr std::string_view hex_digits = "0-9a-fA-F";

/// Rewrites an expression from left to right.
class Translator {
public:
    Translator(std::string_view regex, Dialect dialect) : in_{regex}, dialect_{dialect} {}

    std::string run() {
        while (at_ < in_.size()) step();
        return std::move(out_);
    }

private:
    void step() {
        auto const c = in_[at_];
        if (c == '\\') {
            atom_ = out_.size();
            escape(false);
        } else if (c == '[') {
            atom_ = out_.size();
            out_ += bracket();
        } else if (c == '(') {
            open();
        } else if (c == ')') {
            atom_ = groups_.empty() ? 0 : groups_.back();
            if (!groups_.empty()) groups_.pop_back();
            copy(1);
        } else if (c == '{') {
            interval();
        } else if (c == '*' || c == '+' || c == '?') {
            copy(1);
        } else {
            atom_ = out_.size();
            copy(utf8_length(static_cast<unsigned char>(c)));
        }
    }

    void copy(std::size_t count) {
        out_ += in_.substr(at_, count);
        at_ = std::min(at_ + count, in_.size());
    }

    void open() {
        groups_.push_back(out_.size());
        // In Ruby `(?m` lets a dot match line ends.
        if (dialect_ == Dialect::ruby && in_.substr(at_, 3) == "(?m") {
            out_ += "(?s";
            at_ += 3;
            return;
        }
        copy(1);
        if (at_ < in_.size() && in_[at_] == '?') {
            // Up to what ends the kind of group, so that its signs are not taken for others.
            auto const end = in_.find_first_of(":)=!>|", at_);
            copy(end == std::string_view::npos ? 1 : end - at_);
            if (at_ < in_.size() && in_[at_] != ')') copy(1);
        }
    }

    /// `{1,3}+` repeats the interval in Ruby; elsewhere it is possessive.
    void interval() {
        auto const end = in_.find('}', at_);
        if (end == std::string_view::npos) return copy(1);
        copy(end + 1 - at_);
        if (dialect_ != Dialect::ruby || at_ >= in_.size() || in_[at_] != '+') return;
        out_.insert(atom_, "(?:");
        out_ += ")+";
        ++at_;
    }

    void escape(bool in_class) {
        if (at_ + 1 >= in_.size()) return copy(1);
        auto const c = in_[at_ + 1];
        auto const set = [&](std::string_view members, bool negated) {
            at_ += 2;
            if (in_class) {
                out_ += members;
            } else {
                out_ += negated ? "[^" : "[";
                out_ += members;
                out_ += ']';
            }
        };
        switch (c) {
            case 's':
                return set(spaces, false);
            case 'w':
                return set(words, false);
            case 'S':
                return in_class ? copy(2) : set(spaces, true);
            case 'W':
                return in_class ? copy(2) : set(words, true);
            case 'h':
            case 'H':
                if (dialect_ == Dialect::ruby && (!in_class || c == 'h')) {
                    return set(hex_digits, c == 'H');
                }
                return copy(2);
            case 'v':
                out_ += "\\x0b";
                at_ += 2;
                return;
            case 'u':
                if (at_ + 6 <= in_.size()) {
                    out_ += "\\x{" + std::string{in_.substr(at_ + 2, 4)} + "}";
                    at_ += 6;
                    return;
                }
                return copy(2);
            case 'p':
            case 'P':
                return property();
            default:
                copy(1);
                return copy(utf8_length(static_cast<unsigned char>(in_[at_])));
        }
    }

    /// A script is what a character belongs to, not all where it is used.
    void property() {
        auto const end = in_.find('}', at_);
        if (at_ + 2 >= in_.size() || in_[at_ + 2] != '{' || end == std::string_view::npos) {
            return copy(2);
        }
        auto name = in_.substr(at_ + 3, end - at_ - 3);
        copy(3);
        if (!name.empty() && name.front() == '^') {
            out_ += '^';
            name.remove_prefix(1);
        }
        for (auto const start : {"Script=", "script=", "sc="}) {
            if (name.substr(0, std::string_view{start}.size()) == start) {
                name.remove_prefix(std::string_view{start}.size());
            }
        }
        // General categories have at most two letters; what else is no script, is in this list.
        auto const script = name.size() > 2 && name != "Any" && name != "Alphabetic" &&
                            name.find_first_of(":=") == std::string_view::npos;
        out_ += script ? long_category(name) : std::string{name};
        out_ += '}';
        at_ = end + 1;
    }

    static std::string long_category(std::string_view name) {
        struct Long {
            std::string_view name;
            std::string_view category;
        };
        constexpr Long categories[] = {{"Letter", "L"},
                                       {"Mark", "M"},
                                       {"Number", "N"},
                                       {"Punctuation", "P"},
                                       {"Symbol", "S"},
                                       {"Separator", "Z"},
                                       {"Other", "C"},
                                       {"Uppercase_Letter", "Lu"},
                                       {"Lowercase_Letter", "Ll"}};
        for (auto const& one : categories) {
            if (one.name == name) return std::string{one.category};
        }
        return "sc:" + std::string{name};
    }

    /// A class, with its brackets. `[a&&b]` is what is in both.
    std::string bracket() {
        constexpr int deepest = 16;
        if (++depth_ > deepest) return std::string{in_.substr(at_++, 1)};  // PCRE2 will tell
        std::string saved;
        std::swap(saved, out_);
        std::string all;  // what the parts before the last one ask for
        auto const negated = in_.substr(at_, 2) == "[^";
        std::string const start = negated ? "[^" : "[";
        at_ += start.size();
        auto first = true;
        auto const finish = [&] { return only_class_ ? out_ : start + out_ + "]"; };
        only_class_ = false;
        while (at_ < in_.size() && (in_[at_] != ']' || first)) {
            if (in_.substr(at_, 2) == "&&") {
                at_ += 2;
                all += "(?=" + finish() + ")";
                out_.clear();
                only_class_ = false;
            } else {
                class_member();
            }
            first = false;
        }
        // A class without an end stays one, for PCRE2 to refuse.
        auto result = at_ < in_.size() ? finish() : start + out_;
        ++at_;
        only_class_ = false;
        if (!all.empty()) result = "(?:" + all + result + ")";
        std::swap(saved, out_);
        --depth_;
        return result;
    }

    void class_member() {
        if (in_[at_] == '\\') return escape(true);
        if (in_[at_] != '[') return copy(utf8_length(static_cast<unsigned char>(in_[at_])));
        if (in_.substr(at_, 2) == "[:") {
            auto const end = in_.find(":]", at_);
            return copy(end == std::string_view::npos ? 1 : end + 2 - at_);
        }
        auto const alone = out_.empty();
        auto inner = bracket();
        // A class within a class is part of it, or all of it.
        if (alone && (at_ >= in_.size() || in_[at_] == ']' || in_.substr(at_, 2) == "&&")) {
            out_ = std::move(inner);
            only_class_ = true;
        } else if (inner.size() > 2 && inner.front() == '[' && inner[1] != '^') {
            out_ += inner.substr(1, inner.size() - 2);
        } else {
            out_ += inner;  // PCRE2 will tell
        }
    }

    std::string_view in_;
    Dialect dialect_;
    std::size_t at_{0};
    std::string out_;
    std::size_t atom_{0};  // where in `out_` the last thing begins that can be repeated
    std::vector<std::size_t> groups_;
    bool only_class_{false};
    int depth_{0};
};

}  // namespace

std::string translated(std::string_view regex, Dialect dialect) {
    return Translator{regex, dialect}.run();
}

}  // namespace tinkxx::text
