#pragma once

#include "text/tokenizer/vocabulary/vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace tinkxx::text {

/// Finds the words that a text begins with. Nodes lie in the order of their depth, so that the
/// children of each lie together, and a node is known by one number.
class ByteTrie {
public:
    struct Word {
        std::string_view text{};
        std::uint32_t value{};
    };
    using Node = std::uint32_t;
    static constexpr Node root = 0;
    static constexpr Node nowhere = 0xffffffff;

    ByteTrie() = default;
    /// Of words that differ from each other; empty ones are left out.
    explicit ByteTrie(std::vector<Word> words);

    [[nodiscard]] Node child(Node node, unsigned char byte) const noexcept {
        if (node == root) return first_[byte];
        auto const& links = links_[node];
        auto const* const labels = labels_.data() + links.children;
        if (links.count == 1) return labels[0] == byte ? links.children : nowhere;
        if (links.count == 0) return nowhere;
        auto const* const found =
            static_cast<unsigned char const*>(std::memchr(labels, byte, links.count));
        if (found == nullptr) return nowhere;
        return links.children + static_cast<Node>(found - labels);
    }
    /// The value of the word that ends at a node, or `no_token`.
    [[nodiscard]] std::uint32_t value(Node node) const noexcept { return links_[node].value; }

private:
    struct Links {
        Node children{};
        std::uint32_t count{};
        std::uint32_t value{no_token};
    };

    std::vector<Links> links_{Links{}};
    std::vector<unsigned char> labels_{0};  // of the edge that leads to each node
    std::vector<Node> first_ = std::vector<Node>(256, nowhere);
};

}  // namespace tinkxx::text
