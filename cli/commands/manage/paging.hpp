#pragma once

#include "dialog/progress.hpp"
#include "frame/context.hpp"
#include "output/words.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::cli {

/// Which part of a list is wanted, and how much of it the server is asked for at once.
struct Paging {
    /// 0: all.
    std::int64_t limit{20};
    std::int64_t offset{0};
    std::int64_t page_size{100};
};

/// One page, and how long the whole list is, if the server says so.
template <class T>
struct PartOfList {
    std::vector<T> items{};
    std::optional<std::int64_t> total{};
};

/// How much of a list was shown.
struct Shown {
    std::int64_t shown{0};
    std::optional<std::int64_t> total{};
};

/// Gives `use` one page after the other: until the limit, the end of the list, or a short page.
/// `fetch(limit, offset)` gives a `PartOfList`.
template <class Fetch, class Use>
Shown for_each_page(Paging const& paging, Fetch const& fetch, Use const& use) {
    Shown so_far;
    while (true) {
        auto const wanted = paging.limit == 0
                                ? paging.page_size
                                : std::min(paging.limit - so_far.shown, paging.page_size);
        auto const page = fetch(wanted, paging.offset + so_far.shown);
        so_far.total = page.total;
        so_far.shown += static_cast<std::int64_t>(page.items.size());
        use(page, so_far);
        bool const is_short = static_cast<std::int64_t>(page.items.size()) < wanted;
        bool const enough = paging.limit != 0 && so_far.shown >= paging.limit;
        bool const all = page.total && paging.offset + so_far.shown >= *page.total;
        if (is_short || enough || all) return so_far;
    }
}

/// What stands above a table: how many there are, and how many more.
inline std::string title_of(Paging const& paging, std::int64_t first_page,
                            std::optional<std::int64_t> total, std::string_view what) {
    if (!total) return counted(first_page, what);
    auto const left = std::max<std::int64_t>(*total - paging.offset, 0);
    auto const shown = paging.limit == 0 ? left : std::min(left, paging.limit);
    auto title = counted(shown, what);
    if (*total > shown) {
        title += " (" + std::to_string(*total - shown) + " more, see --limit and --offset)";
    }
    return title;
}

/// Shows how far the reading of a list has come, unless the list itself appears there.
inline void show_progress(Progress& progress, Paging const& paging, Shown const& so_far,
                          Context const& context) {
    if (!so_far.total || context.terminal.screen().out) return;
    auto const left = std::max<std::int64_t>(*so_far.total - paging.offset, 0);
    progress.show(so_far.shown, paging.limit == 0 ? left : std::min(left, paging.limit));
}

}  // namespace tinkxx::cli
