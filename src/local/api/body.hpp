#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::local {

/// Appends, and takes no more memory than twice what it needs or `most` in all. A string that grows
/// by itself may pass `most`.
inline void append_within(std::string& text, std::string_view more, std::size_t most) {
    constexpr std::size_t least_grown = std::size_t{4} << 10U;
    auto const need = text.size() + more.size();
    if (need > text.capacity()) {
        std::string grown;
        // (Its capacity is at most half of what a string can have.)
        grown.reserve(std::max(need, std::min(std::max(text.capacity() * 2, least_grown), most)));
        text = std::move(grown.append(text));
    }
    text.append(more.data(), more.size());
}

/// The body of a request as it came. It grows in pieces, so that a large one is never copied while
/// it comes, which is done where others wait.
class RequestBody {
public:
    static constexpr std::size_t largest_piece = std::size_t{1} << 20U;

    RequestBody() = default;
    RequestBody(std::string text) : size_{text.size()} {
        if (!text.empty()) pieces_.push_back(std::move(text));
    }

    /// Takes memory for at most `most` bytes in all.
    void append(std::string_view bytes, std::size_t most) {
        while (!bytes.empty()) {
            if (pieces_.empty() || pieces_.back().size() >= largest_piece) pieces_.emplace_back();
            auto& piece = pieces_.back();
            auto const part = bytes.substr(0, largest_piece - piece.size());
            auto const left = most - std::min(most, size_);
            append_within(piece, part, std::min(largest_piece, piece.size() + left));
            size_ += part.size();
            bytes.remove_prefix(part.size());
        }
    }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// Memory that it takes.
    [[nodiscard]] std::size_t memory() const noexcept {
        auto sum = pieces_.capacity() * sizeof(std::string);
        for (auto const& piece : pieces_) sum += piece.capacity() + 1;
        return sum;
    }
    /// All of it as one text. Copies a body of several pieces: not for the loop.
    [[nodiscard]] std::string join() && {
        auto pieces = std::exchange(pieces_, {});
        auto const size = std::exchange(size_, 0);
        if (pieces.empty()) return {};
        if (pieces.size() == 1) return std::move(pieces.front());
        std::string text;
        text.reserve(size);
        for (auto& piece : pieces) {
            text += piece;
            piece = std::string{};
        }
        return text;
    }

private:
    std::vector<std::string> pieces_{};
    std::size_t size_{0};
};

}  // namespace tinkxx::local
