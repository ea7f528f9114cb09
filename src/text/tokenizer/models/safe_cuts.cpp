#include "text/tokenizer/models/safe_cuts.hpp"

#include "text/unicode/utf8.hpp"

#include <utility>

namespace tinkxx::text {
namespace {

constexpr std::uint64_t pair_key(char32_t left, char32_t right) noexcept {
    return static_cast<std::uint64_t>(left) << 32U | right;
}

constexpr std::size_t pair_hash(std::uint64_t key) noexcept {
    return (key * 0x9e3779b97f4a7c15U ^ key >> 29U) * 0xd6e8feb86659fd93U >> 32U;
}

}  // namespace

SafeCuts::SafeCuts(Vocabulary const& vocabulary, std::vector<std::uint32_t> const& products,
                   bool known_only)
    : flags_(direct, known_only ? std::uint8_t{0} : std::uint8_t{known}), pairs_(1U << 15U) {
    for (std::uint32_t id = 0; known_only && id < vocabulary.limit(); ++id) {
        if (!vocabulary.contains(id)) continue;
        auto const text = vocabulary.text(id);
        if (text.empty() || utf8_length(static_cast<unsigned char>(text[0])) != text.size())
            continue;
        auto const* p = text.data();
        if (auto const c = next_character(p); c < direct) flags_[c] |= known;
    }
    for (auto const id : products) add_token(vocabulary.text(id));
}

void SafeCuts::add_token(std::string_view text) {
    for (std::size_t i = 1; i < text.size(); ++i) {
        if (!continues_character(text[i])) add_border(text, i);
    }
}

void SafeCuts::add_border(std::string_view text, std::size_t at) {
    auto begin = at - 1;
    while (begin > 0 && continues_character(text[begin])) --begin;
    // A token may begin or end within a character.
    auto const whole_left = !continues_character(text[begin]) &&
                            begin + utf8_length(static_cast<unsigned char>(text[begin])) == at;
    auto const whole_right = at + utf8_length(static_cast<unsigned char>(text[at])) <= text.size();
    auto const character_at = [text](std::size_t place) {
        auto const* p = text.data() + place;
        return next_character(p);
    };
    if (whole_left && whole_right) {
        add_pair(character_at(begin), character_at(at));
    } else if (whole_left) {
        if (auto const c = character_at(begin); c < direct) flags_[c] |= joins_behind;
    } else if (whole_right) {
        if (auto const c = character_at(at); c < direct) flags_[c] |= joins_before;
    } else {
        auto const left = static_cast<unsigned char>(text[at - 1]);
        auto const right = static_cast<unsigned char>(text[at]);
        byte_pairs_.set(static_cast<std::size_t>(left) << 8U | right);
    }
}

void SafeCuts::add_pair(char32_t left, char32_t right) {
    if (left < 128 && right < 128) {
        ascii_pairs_.set(left << 7U | right);
        return;
    }
    if (has_pair(left, right)) return;
    if ((pair_count_ + 1) * 2 > pairs_.size()) {
        auto old = std::vector<std::uint64_t>(pairs_.size() * 2);
        old.swap(pairs_);
        pair_count_ = 0;
        for (auto const key : old) {
            if (key != 0) {
                add_pair(static_cast<char32_t>(key >> 32U), static_cast<char32_t>(key));
            }
        }
    }
    auto const key = pair_key(left, right);
    auto const mask = pairs_.size() - 1;
    auto at = pair_hash(key) & mask;
    while (pairs_[at] != 0) at = (at + 1) & mask;
    pairs_[at] = key;
    ++pair_count_;
}

bool SafeCuts::has_pair(char32_t left, char32_t right) const noexcept {
    auto const key = pair_key(left, right);
    auto const mask = pairs_.size() - 1;
    for (auto at = pair_hash(key) & mask; pairs_[at] != 0; at = (at + 1) & mask) {
        if (pairs_[at] == key) return true;
    }
    return false;
}

bool SafeCuts::may_cut(char32_t left, char32_t right, unsigned char left_byte,
                       unsigned char right_byte) const noexcept {
    if (left >= direct || right >= direct) return false;
    if ((flags_[left] & (known | joins_behind)) != known) return false;
    if ((flags_[right] & (known | joins_before)) != known) return false;
    if (left < 128 && right < 128) return !ascii_pairs_.test(left << 7U | right);
    if (byte_pairs_.test(static_cast<std::size_t>(left_byte) << 8U | right_byte)) return false;
    return !has_pair(left, right);
}

std::size_t SafeCuts::next(std::string_view text) const noexcept {
    char const* p = text.data();
    char const* const end = p + text.size();
    auto left = next_character(p);
    while (p < end) {
        auto const* const border = p;
        auto const right = next_character(p);
        if (may_cut(left, right, static_cast<unsigned char>(border[-1]),
                    static_cast<unsigned char>(*border))) {
            return static_cast<std::size_t>(border - text.data());
        }
        left = right;
    }
    return text.size();
}

}  // namespace tinkxx::text
