#pragma once

#include "engine/common/aligned_floats.hpp"
#include "engine/model/pass.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace tinkxx::engine {

/// Pages of keys and values, counted references to them, and the pages of past prompts.
///
/// A page is *pinned* while somebody holds it, *cached* while only the prefix cache does; cached
/// pages are given up, the longest unused first, when a new one is needed. One thread at a time.
class PagePool {
public:
    using Page = std::uint32_t;
    /// A place in the tree of cached prefixes; 0 is the root.
    using Node = std::uint64_t;

    /// At most `bytes` of memory, taken page by page when needed.
    PagePool(KvLayout layout, std::size_t bytes);

    [[nodiscard]] KvLayout const& layout() const noexcept { return layout_; }
    [[nodiscard]] std::size_t page_bytes() const noexcept {
        return layout_.page_floats() * sizeof(float);
    }
    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] std::size_t pinned() const noexcept { return pinned_; }
    [[nodiscard]] std::size_t cached() const noexcept { return cache_.size(); }

    /// A zeroed page held once. At least one page must not be pinned.
    Page take();
    void hold(Page page);
    void release(Page page);
    [[nodiscard]] float* data(Page page) const noexcept { return entries_[page].memory.get(); }
    /// A page of one's own with the same content.
    Page copy(Page page);

    /// Who computed a page: pages of different weights are never shared.
    struct Owner {
        std::uint64_t adapter{0};
        std::uint64_t version{0};

        auto operator<=>(Owner const&) const = default;
    };
    struct Hit {
        Page page{0};
        Node node{0};
    };
    /// The page of `tokens` (64 of them) behind `parent`, held for the caller; node 0 if unknown.
    Hit find(Owner owner, Node parent, std::span<std::int32_t const> tokens);
    /// Remembers a full page, unless an equal one is known. Returns its node.
    Node remember(Owner owner, Node parent, std::span<std::int32_t const> tokens, Page page);

private:
    struct Key {
        Owner owner{};
        Node parent{0};
        std::vector<std::int32_t> tokens{};

        auto operator<=>(Key const&) const = default;
    };
    struct Cached {
        Page page{0};
        Node node{0};
        std::uint64_t used{0};
        /// Cached pages right behind this one. They are of no use without it, so they go first.
        std::uint32_t children{0};
    };
    using Cache = std::map<Key, Cached>;
    struct Entry {
        AlignedFloats memory{};
        /// Holders, the cache not counted.
        std::uint32_t holders{0};
        bool cached{false};
        /// If it is cached.
        Cache::iterator place{};
    };
    /// The order in which cached pages are given up.
    using Rank = std::pair<bool, std::uint64_t>;

    [[nodiscard]] static Rank rank(Cached const& cached) noexcept {
        return {cached.children > 0, cached.used};
    }
    /// Changes a cached page and keeps its place among those that nobody holds.
    template <class Change>
    void change(Cache::iterator place, Change const& how);
    /// Frees the cached page that was not used for the longest time; false if none can be.
    bool evict();

    KvLayout layout_;
    std::size_t capacity_;
    std::size_t pinned_{0};
    std::vector<Entry> entries_{};
    std::vector<Page> free_{};
    Cache cache_{};
    /// Cached pages that nobody holds; the first is given up next.
    std::map<Rank, Cache::iterator> idle_{};
    std::map<Node, Cache::iterator> by_node_{};
    Node last_node_{0};
    std::uint64_t clock_{0};
};

}  // namespace tinkxx::engine
