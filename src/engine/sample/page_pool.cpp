#include "engine/sample/page_pool.hpp"

#include <cassert>
#include <cstring>
#include <utility>

namespace tinkxx::engine {

PagePool::PagePool(KvLayout layout, std::size_t bytes)
    : layout_{layout}, capacity_{bytes / (layout.page_floats() * sizeof(float))} {}

PagePool::Page PagePool::take() {
    if (free_.empty() && entries_.size() >= capacity_ && !evict()) {
        assert(false && "the caller must have reserved a page");
    }
    Page page = 0;
    if (free_.empty()) {
        page = static_cast<Page>(entries_.size());
        auto memory = aligned_floats(layout_.page_floats());
        entries_.emplace_back().memory = std::move(memory);
    } else {
        page = free_.back();
        free_.pop_back();
    }
    // Attention reads unwritten positions, and an earlier user may have left NaN.
    std::memset(data(page), 0, page_bytes());
    entries_[page].holders = 1;
    ++pinned_;
    return page;
}

void PagePool::hold(Page page) {
    auto& entry = entries_[page];
    if (entry.holders++ > 0) return;
    ++pinned_;
    if (entry.cached) idle_.erase(rank(entry.place->second));
}

void PagePool::release(Page page) {
    auto& entry = entries_[page];
    assert(entry.holders > 0);
    if (--entry.holders > 0) return;
    --pinned_;
    if (entry.cached) {
        idle_.emplace(rank(entry.place->second), entry.place);
    } else {
        free_.push_back(page);
    }
}

template <class Change>
void PagePool::change(Cache::iterator place, Change const& how) {
    bool const idle = entries_[place->second.page].holders == 0;
    if (idle) idle_.erase(rank(place->second));
    how(place->second);
    if (idle) idle_.emplace(rank(place->second), place);
}

PagePool::Page PagePool::copy(Page page) {
    auto const own = take();
    std::memcpy(data(own), data(page), page_bytes());
    return own;
}

PagePool::Hit PagePool::find(Owner owner, Node parent, std::span<std::int32_t const> tokens) {
    auto const found =
        cache_.find({.owner = owner, .parent = parent, .tokens = {tokens.begin(), tokens.end()}});
    if (found == cache_.end()) return {};
    hold(found->second.page);
    found->second.used = ++clock_;
    return {.page = found->second.page, .node = found->second.node};
}

PagePool::Node PagePool::remember(Owner owner, Node parent, std::span<std::int32_t const> tokens,
                                  Page page) {
    auto const [place, fresh] = cache_.try_emplace(
        {.owner = owner, .parent = parent, .tokens = {tokens.begin(), tokens.end()}});
    if (!fresh) {
        change(place, [this](Cached& cached) { cached.used = ++clock_; });
        return place->second.node;
    }
    place->second = {.page = page, .node = ++last_node_, .used = ++clock_};
    auto& entry = entries_[page];
    assert(entry.holders > 0 && !entry.cached);
    entry.cached = true;
    entry.place = place;
    by_node_.emplace(last_node_, place);
    if (auto const above = by_node_.find(parent); above != by_node_.end()) {
        change(above->second, [](Cached& cached) { ++cached.children; });
    }
    return last_node_;
}

bool PagePool::evict() {
    if (idle_.empty()) return false;
    auto const oldest = idle_.begin()->second;
    idle_.erase(idle_.begin());
    entries_[oldest->second.page].cached = false;
    free_.push_back(oldest->second.page);
    if (auto const above = by_node_.find(oldest->first.parent); above != by_node_.end()) {
        change(above->second, [](Cached& cached) { --cached.children; });
    }
    by_node_.erase(oldest->second.node);
    cache_.erase(oldest);
    return true;
}

}  // namespace tinkxx::engine
