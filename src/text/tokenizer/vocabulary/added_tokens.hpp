#pragma once

#include <tinkxx/text/tokenizer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::text {

/// Finds a set of texts in another: at each place the longest, and then on behind it.
class TextFinder {
public:
    struct Wanted {
        std::string text{};
        std::uint32_t index{};
    };
    struct Found {
        std::size_t begin{};
        std::size_t end{};
        std::uint32_t index{};
    };

    TextFinder() = default;
    /// Of texts that differ from each other and are not empty.
    explicit TextFinder(std::vector<Wanted> wanted);

    [[nodiscard]] bool empty() const noexcept { return wanted_.empty(); }
    /// The next one at or behind `from`; false if there is none.
    [[nodiscard]] bool next(std::string_view text, std::size_t from, Found& found) const noexcept;

private:
    [[nodiscard]] bool match(std::string_view text, std::size_t at, Found& found) const noexcept;

    std::vector<Wanted> wanted_;  // sorted by text
    struct Range {
        std::uint32_t begin{};
        std::uint32_t end{};
    };
    std::array<Range, 256> by_first_byte_{};
    std::vector<unsigned char> first_bytes_;
};

/// The tokens that are looked for before a text is cut into words.
class AddedTokens {
public:
    struct Entry {
        AddedToken token{};
        std::string normalized{};  ///< the text that is looked for, and that decoding starts from
    };
    /// A part of a text: a token, or what is between tokens (`token` is null).
    struct Part {
        std::size_t begin{};
        std::size_t end{};
        Entry const* token{};
    };

    AddedTokens() = default;
    /// In the order of their ids, each id once.
    explicit AddedTokens(std::vector<Entry> entries);

    /// Parts of a text as it was given, or of a normalized one. Throws `ValidationError` if special
    /// tokens are forbidden and one is there. Parts may be empty, and one may begin within another.
    void split(std::string_view text, bool normalized, SpecialText policy,
               std::vector<Part>& parts) const;
    [[nodiscard]] bool has(bool normalized) const noexcept {
        return !(normalized ? in_normalized_ : in_text_).empty();
    }
    [[nodiscard]] std::vector<Entry> const& entries() const noexcept { return entries_; }
    [[nodiscard]] Entry const* find(std::uint32_t id) const noexcept;

private:
    std::vector<Entry> entries_;
    TextFinder in_text_;
    TextFinder in_normalized_;
};

}  // namespace tinkxx::text
