#pragma once

// What <tinkxx/concurrency.hpp> is made of. Included by it.

#include <tinkxx/detail/continuations.hpp>
#include <tinkxx/future.hpp>

#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tinkxx::detail {

template <class T>
[[nodiscard]] std::vector<std::shared_ptr<State<T>>> take_all(std::vector<Future<T>>& futures) {
    std::vector<std::shared_ptr<State<T>>> sources;
    sources.reserve(futures.size());
    for (auto& future : futures) sources.push_back(FutureAccess::take(future));
    return sources;
}

/// For a `Join` that ends with its first part: reached only if it has none.
struct NothingToWaitFor {
    template <class T>
    void deliver(Promise<T>& promise) {
        promise.set_error(usage_error("when_any: there is no future to wait for"));
    }
};

/// A range as `for_each_limited` keeps it: an lvalue by its address, anything else as its own.
template <class Range>
class Held {
public:
    explicit Held(Range range) : range_{std::move(range)} {}
    [[nodiscard]] Range& get() noexcept { return range_; }

private:
    Range range_;
};
template <class Range>
class Held<Range&> {
public:
    explicit Held(Range& range) noexcept : range_{&range} {}
    [[nodiscard]] Range& get() noexcept { return *range_; }

private:
    Range* range_;
};
template <class Range>
[[nodiscard]] Held<Range> hold(Range&& range) {
    return Held<Range>{std::forward<Range>(range)};
}

template <class Range>
using Element = decltype(*std::begin(std::declval<std::remove_reference_t<Range>&>()));

template <class Fn, class Range>
inline constexpr bool makes_futures = false;
template <class Fn, class Range>
    requires std::is_invocable_v<Fn&, Element<Range>>
inline constexpr bool makes_futures<Fn, Range> =
    Unwrap<std::remove_cvref_t<std::invoke_result_t<Fn&, Element<Range>>>>::is_future;

struct DropValues {
    template <class T>
    void keep(std::size_t /*index*/, T const& /*value*/) const noexcept {}
    void deliver(Promise<void>& promise) const { promise.set_value(); }
};
template <class T>
struct KeepValues : VectorValues<T> {
    void keep(std::size_t index, T value) {
        if (this->slots.size() <= index) this->slots.resize(index + 1);
        this->slots[index].emplace(std::move(value));
    }
};

/// Behind `for_each_limited`. Kept alive by the calls under way, and by the thread in `advance`.
template <class Range, class Fn, class Values, class Answer>
class Limited : public std::enable_shared_from_this<Limited<Range, Fn, Values, Answer>> {
    using Called = std::remove_cvref_t<
        std::invoke_result_t<Fn&, decltype(*std::begin(std::declval<Range&>().get()))>>;
    using Value = typename Unwrap<Called>::type;

public:
    Limited(Range range, std::size_t limit, Fn fn)
        : range_{std::move(range)}, fn_{std::move(fn)}, limit_{limit} {}

    [[nodiscard]] static Future<Answer> start(char const* operation, Range range, std::size_t limit,
                                              Fn fn) {
        if (limit == 0) {
            usage_error(std::string{operation} + ": limit is 0; it must be at least 1").raise();
        }
        auto const run = std::make_shared<Limited>(std::move(range), limit, std::move(fn));
        run->promise_.on_cancel([weak = run->weak_from_this()] {
            if (auto const self = weak.lock()) self->fail(cancelled_error());
        });
        auto future = run->promise_.get_future();
        run->advance();
        return future;
    }

private:
    using Iterator = decltype(std::begin(std::declval<Range&>().get()));
    using End = decltype(std::end(std::declval<Range&>().get()));

    /// Starts calls while there is room. One thread at a time does so; another that comes meanwhile
    /// returns at once, since the first looks again before it returns.
    void advance() {
        auto const keep_alive = this->shared_from_this();
        std::unique_lock lock{mutex_};
        if (std::exchange(advancing_, true)) return;
        while (!failure_ && !exhausted_ && active_ < limit_) {
            auto const index = started_++;
            ++active_;
            lock.unlock();
            begin(index);
            lock.lock();
        }
        advancing_ = false;
        bool const over = active_ == 0 && (failure_ || exhausted_);
        if (!over || std::exchange(delivered_, true)) return;
        lock.unlock();
        if (failure_) {
            promise_.set_error(*failure_);
        } else {
            values_.deliver(promise_);
        }
    }

    void begin(std::size_t index) {
        try {
            if (!at_) {
                at_.emplace(std::begin(range_.get()));
                end_.emplace(std::end(range_.get()));
            } else {
                ++*at_;
            }
            if (*at_ == *end_) return exhaust();
            auto future = std::invoke(fn_, **at_);
            follow(index, FutureAccess::take(future));
        } catch (...) {
            fail(current_error());
            ended(index);
        }
    }
    void exhaust() {
        std::scoped_lock const lock{mutex_};
        exhausted_ = true;
        --active_;
    }
    void follow(std::size_t index, std::shared_ptr<State<Value>> const& source) {
        FutureAccess::state(promise_)->adopt(source->context());
        bool unwanted = false;
        {
            std::scoped_lock const lock{mutex_};
            under_way_.emplace(index, source);
            unwanted = failure_.has_value();
        }
        if (unwanted) source->cancel();
        notify(
            source,
            [self = this->shared_from_this(), index](Result<Value> result) {
                self->settle(index, std::move(result));
            },
            Continuation::Where::executor);
    }
    void settle(std::size_t index, Result<Value> result) {
        if (!result) {
            fail(result.error());
        } else if constexpr (!std::is_void_v<Value>) {
            try {
                std::scoped_lock const lock{mutex_};
                values_.keep(index, *std::move(result));
            } catch (...) {
                fail(current_error());
            }
        }
        ended(index);
        advance();
    }
    void ended(std::size_t index) {
        std::scoped_lock const lock{mutex_};
        under_way_.erase(index);
        --active_;
    }
    /// The first failure wins. Cancels what is under way.
    void fail(Error const& error) {
        std::vector<std::shared_ptr<StateBase>> unwanted;
        {
            std::scoped_lock const lock{mutex_};
            if (failure_ || delivered_) return;
            failure_ = error;
            for (auto const& [index, weak] : under_way_) {
                if (auto source = weak.lock()) unwanted.push_back(std::move(source));
            }
        }
        for (auto const& source : unwanted) source->cancel();
    }

    Promise<Answer> promise_{};
    // For the thread in `advance`.
    Range range_;
    Fn fn_;
    std::optional<Iterator> at_{};
    std::optional<End> end_{};

    std::size_t const limit_;
    std::mutex mutex_;  // guards what follows; never held while others' code runs
    std::map<std::size_t, std::weak_ptr<StateBase>> under_way_{};
    std::optional<Error> failure_{};
    Values values_{};
    std::size_t started_{0};
    std::size_t active_{0};
    bool advancing_{false};
    bool exhausted_{false};
    bool delivered_{false};
};

}  // namespace tinkxx::detail
