#pragma once

#include <tinkxx/listing.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace tinkxx::client {

/// A page as it was fetched, and how long the whole list is, if the server says that.
template <class T>
struct FetchedPage {
    std::vector<T> items{};
    std::optional<std::int64_t> total{};
};

/// Lists by offset: asks for the page behind what has come so far, until there is nothing more. A
/// server that gives fewer at once than it was asked for is followed.
template <class T>
class OffsetPages {
public:
    /// Asks for the page that begins at an offset.
    using Fetch = std::function<Future<FetchedPage<T>>(std::int64_t offset)>;

    [[nodiscard]] static Listing<T> listing(std::int64_t begin, Fetch fetch) {
        auto const pages = std::make_shared<OffsetPages>(begin, std::move(fetch));
        return Listing<T>{[pages] { return next(pages); }};
    }

    OffsetPages(std::int64_t begin, Fetch fetch) : fetch_{std::move(fetch)}, offset_{begin} {}

private:
    static Future<std::vector<T>> next(std::shared_ptr<OffsetPages> const& pages) {
        std::int64_t from = 0;
        {
            std::scoped_lock const lock{pages->mutex_};
            if (pages->over_) return make_ready_future(std::vector<T>{});
            from = pages->offset_;
        }
        auto page = pages->fetch_(from);
        return page.then([pages, from](FetchedPage<T> fetched) {
            pages->move_on(from, fetched);
            return std::move(fetched.items);
        });
    }
    void move_on(std::int64_t from, FetchedPage<T> const& fetched) {
        std::scoped_lock const lock{mutex_};
        if (offset_ != from) return;  // it was asked for twice
        offset_ += static_cast<std::int64_t>(fetched.items.size());
        over_ = fetched.items.empty() || (fetched.total && offset_ >= *fetched.total);
    }

    Fetch const fetch_;
    std::mutex mutex_{};  // guards what follows: pages come on the callback executor
    std::int64_t offset_;
    bool over_{false};
};

}  // namespace tinkxx::client
