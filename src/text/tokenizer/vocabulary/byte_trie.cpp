#include "text/tokenizer/vocabulary/byte_trie.hpp"

#include <algorithm>
#include <utility>

namespace tinkxx::text {

ByteTrie::ByteTrie(std::vector<Word> words) {
    std::erase_if(words, [](Word const& word) { return word.text.empty(); });
    std::ranges::sort(words, {}, &Word::text);
    struct Span {
        std::size_t begin;
        std::size_t end;
    };
    // The words below each node, level by level.
    std::vector<Span> level{{0, words.size()}};
    Node node = root;
    for (std::size_t depth = 0; !level.empty(); ++depth) {
        std::vector<Span> next;
        for (auto [begin, end] : level) {
            auto& own = links_[node];
            if (begin < end && words[begin].text.size() == depth) own.value = words[begin++].value;
            own.children = static_cast<Node>(links_.size());
            auto count = std::uint32_t{0};
            while (begin < end) {
                auto const label = static_cast<unsigned char>(words[begin].text[depth]);
                auto const from = begin;
                while (begin < end &&
                       static_cast<unsigned char>(words[begin].text[depth]) == label) {
                    ++begin;
                }
                next.push_back({from, begin});
                labels_.push_back(label);
                links_.emplace_back();
                ++count;
            }
            links_[node++].count = count;
        }
        level = std::move(next);
    }
    auto const& top = links_[root];
    for (Node at = top.children; at < top.children + top.count; ++at) first_[labels_[at]] = at;
}

}  // namespace tinkxx::text
