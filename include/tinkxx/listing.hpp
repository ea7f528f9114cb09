#pragma once

#include <tinkxx/future.hpp>

#include <cstddef>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

namespace tinkxx {

/// A list of the service that is fetched page by page, as it is needed.
///
///     for (auto const& run : rest.training_runs()) …              // waits for each page
///
///     auto runs = rest.training_runs();
///     for (auto page = runs.next().get(); !page.empty(); page = runs.next().get()) …
///
/// Holds one page at most, however long the list is. What is added or removed meanwhile may move
/// the rest of the list, so that something is left out or comes twice.
///
/// One thread at a time. Iterators are valid as long as the listing stays where it is.
template <class T>
class Listing {
public:
    using Page = std::vector<T>;
    /// Asks for the page that comes next; gives an empty one once there are no more.
    using Source = std::function<Future<Page>()>;

    class Iterator {
    public:
        using iterator_concept = std::input_iterator_tag;
        using value_type = T;
        using difference_type = std::ptrdiff_t;

        [[nodiscard]] T const& operator*() const noexcept { return listing_->page_[listing_->at_]; }
        [[nodiscard]] T const* operator->() const noexcept { return &**this; }
        /// Waits for the next page at the end of one; throws the error that it ended in.
        Iterator& operator++() {
            listing_->advance();
            return *this;
        }
        void operator++(int) { ++*this; }
        [[nodiscard]] bool operator==(std::default_sentinel_t /*end*/) const noexcept {
            return listing_->at_ == listing_->page_.size();
        }

    private:
        friend class Listing;
        explicit Iterator(Listing& listing) noexcept : listing_{&listing} {}
        Listing* listing_;
    };

    explicit Listing(Source source) : source_{std::move(source)} {}
    Listing(Listing&&) noexcept = default;
    Listing& operator=(Listing&&) noexcept = default;
    Listing(Listing const&) = delete;
    Listing& operator=(Listing const&) = delete;

    /// The next page, or an empty one if there are no more. To be called again once the page is
    /// there; if it failed, the same page is asked for again.
    [[nodiscard]] Future<Page> next() { return source_(); }

    /// Waits for the first page that was not fetched yet; throws the error that it ended in.
    /// Refused with `UsageError` where waiting is, which is on threads of the runtime.
    [[nodiscard]] Iterator begin() {
        if (at_ == page_.size()) fetch();
        return Iterator{*this};
    }
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

private:
    void advance() {
        if (++at_ == page_.size()) fetch();
    }
    void fetch() {
        // Not after the answer, so that there is never more than one page.
        page_ = {};
        at_ = 0;
        page_ = next().get();
    }

    Source source_;
    Page page_{};
    std::size_t at_{0};
};

}  // namespace tinkxx
