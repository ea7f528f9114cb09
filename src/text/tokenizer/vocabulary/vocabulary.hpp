#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::text {

/// Not a token.
inline constexpr std::uint32_t no_token = 0xffffffff;
/// Ids are kept in tables as long as the highest of them.
inline constexpr std::uint32_t token_limit = 1U << 24U;

/// Texts and their ids, both ways.
class Vocabulary {
public:
    void reserve(std::size_t count, std::size_t bytes);
    enum class Added : std::uint8_t { yes, same_text, same_id };
    /// `id` is below `token_limit`.
    Added add(std::string_view text, std::uint32_t id);

    /// The id of a text, or `no_token`.
    [[nodiscard]] std::uint32_t find(std::string_view text) const noexcept;
    /// The same in two steps, with time between them for the memory to come.
    [[nodiscard]] std::size_t prepare(std::string_view text) const noexcept;
    [[nodiscard]] std::uint32_t find(std::string_view text, std::size_t prepared) const noexcept;
    [[nodiscard]] bool contains(std::uint32_t id) const noexcept {
        return id < entries_.size() && entries_[id].length != no_token;
    }
    /// The text of an id that is contained.
    [[nodiscard]] std::string_view text(std::uint32_t id) const noexcept {
        return std::string_view{texts_}.substr(entries_[id].begin, entries_[id].length);
    }
    [[nodiscard]] std::size_t length(std::uint32_t id) const noexcept {
        return entries_[id].length;
    }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// One more than the highest id.
    [[nodiscard]] std::size_t limit() const noexcept { return entries_.size(); }

private:
    struct Entry {
        std::uint32_t begin{};
        std::uint32_t length{no_token};
    };
    struct Slot {
        std::uint32_t id{no_token};
        std::uint32_t tag{};
    };

    void grow(std::size_t slots);
    void place(Slot slot, std::size_t hash) noexcept;

    std::string texts_;
    std::vector<Entry> entries_;
    std::vector<Slot> slots_;
    std::size_t size_{0};
};

}  // namespace tinkxx::text
