#include "text/tokenizer/vocabulary/vocabulary.hpp"

#include "text/tokenizer/vocabulary/hash.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace tinkxx::text {

void Vocabulary::reserve(std::size_t count, std::size_t bytes) {
    texts_.reserve(bytes);
    entries_.reserve(count);
    grow(std::bit_ceil(std::max<std::size_t>(count + count / 2, 16)));
}

void Vocabulary::grow(std::size_t slots) {
    if (slots <= slots_.size()) return;
    slots_.assign(slots, {});
    for (std::uint32_t id = 0; id < entries_.size(); ++id) {
        if (!contains(id)) continue;
        auto const hash = hash_of(text(id));
        place({.id = id, .tag = static_cast<std::uint32_t>(hash >> 32U)}, hash);
    }
}

void Vocabulary::place(Slot slot, std::size_t hash) noexcept {
    auto const mask = slots_.size() - 1;
    auto at = hash & mask;
    while (slots_[at].id != no_token) at = (at + 1) & mask;
    slots_[at] = slot;
}

Vocabulary::Added Vocabulary::add(std::string_view text, std::uint32_t id) {
    if (contains(id)) return Added::same_id;
    if ((size_ + 1) * 3 > slots_.size() * 2) {
        grow(std::max<std::size_t>(slots_.size() * 2, 16));
    }
    auto const hash = hash_of(text);
    if (find(text, hash) != no_token) return Added::same_text;
    if (id >= entries_.size()) entries_.resize(std::size_t{id} + 1);
    entries_[id] = {.begin = static_cast<std::uint32_t>(texts_.size()),
                    .length = static_cast<std::uint32_t>(text.size())};
    texts_ += text;
    ++size_;
    place({.id = id, .tag = static_cast<std::uint32_t>(hash >> 32U)}, hash);
    return Added::yes;
}

std::uint32_t Vocabulary::find(std::string_view text) const noexcept {
    return slots_.empty() ? no_token : find(text, hash_of(text));
}

std::size_t Vocabulary::prepare(std::string_view text) const noexcept {
    auto const hash = hash_of(text);
    if (!slots_.empty()) __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
    return hash;
}

std::uint32_t Vocabulary::find(std::string_view text, std::size_t hash) const noexcept {
    if (slots_.empty()) return no_token;
    auto const tag = static_cast<std::uint32_t>(hash >> 32U);
    auto const mask = slots_.size() - 1;
    for (auto at = hash & mask; slots_[at].id != no_token; at = (at + 1) & mask) {
        if (slots_[at].tag == tag && this->text(slots_[at].id) == text) return slots_[at].id;
    }
    return no_token;
}

}  // namespace tinkxx::text
