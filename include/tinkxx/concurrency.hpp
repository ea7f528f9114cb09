#pragma once

// Many calls at once: wait for all of them, for the first, for each as it ends, or keep only so
// many under way.

#include <tinkxx/detail/limited.hpp>
#include <tinkxx/future.hpp>
#include <tinkxx/result.hpp>

#include <concepts>
#include <cstddef>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace tinkxx {

/// One of several futures that has ended.
template <class T>
struct Arrival {
    /// Its position among the futures that were given.
    std::size_t index;
    Result<T> result;
};

/// Completes with the results of all futures, in their order, once every one has ended. A failure
/// is one of the results: it cancels nothing. Cancelling the new future cancels all of them. It
/// belongs to the runtime of the first future that has one. Throws `UsageError` if one of them is
/// empty.
template <class T>
[[nodiscard]] Future<std::vector<Result<T>>> when_all_settled(std::vector<Future<T>> futures) {
    using Joined = detail::Join<detail::VectorValues<Result<T>>, std::vector<Result<T>>>;
    auto const sources = detail::take_all(futures);
    auto const join = std::make_shared<Joined>(detail::erased(sources));
    auto all = join->start();
    join->values().slots.resize(sources.size());
    for (std::size_t i = 0; i < sources.size(); ++i) {
        detail::notify(
            sources[i],
            [join, i](Result<T> result) {
                join->values().slots[i].emplace(std::move(result));
                join->part_done();
            },
            detail::Continuation::Where::here);
    }
    if (sources.empty()) join->deliver_nothing();
    return all;
}

/// Completes with the first future that ends, by a value or an error, and cancels the others. Use
/// `Arrivals` to keep those. Otherwise as `when_all_settled`; without any future it fails with
/// `UsageError`.
template <class T>
[[nodiscard]] Future<Arrival<T>> when_any(std::vector<Future<T>> futures) {
    using Joined = detail::Join<detail::NothingToWaitFor, Arrival<T>>;
    auto const sources = detail::take_all(futures);
    auto const join = std::make_shared<Joined>(detail::erased(sources));
    auto first = join->start();
    for (std::size_t i = 0; i < sources.size(); ++i) {
        detail::notify(
            sources[i],
            [join, i](Result<T> result) {
                join->end_with(Arrival<T>{i, std::move(result)});
            },
            detail::Continuation::Where::here);
    }
    if (sources.empty()) join->deliver_nothing();
    return first;
}

/// Gives futures back in the order in which they end:
///
///     for (auto& [index, result] : tinkxx::Arrivals{std::move(pending)}) …      // blocks
///     while (arrivals.left() > 0) use(co_await arrivals.next());                // does not
///
/// Destroying it abandons the results that were not taken, and stops no call; `cancel` does.
///
/// Threads: one thread at a time. Blocking follows the rules of `Future::get`.
template <class T>
class Arrivals {
public:
    class Iterator;

    /// Throws `UsageError` if a future is empty.
    explicit Arrivals(std::vector<Future<T>> futures)
        : sources_{detail::take_all(futures)}, inbox_{std::make_shared<Inbox>(sources_.size())} {
        inbox_->context = detail::context_of(sources_);
        for (std::size_t i = 0; i < sources_.size(); ++i) {
            detail::notify(
                sources_[i],
                [inbox = inbox_, i](Result<T> result) {
                    inbox->put({i, std::move(result)});
                },
                detail::Continuation::Where::here);
        }
    }

    /// How many have not been handed out.
    [[nodiscard]] std::size_t left() const { return inbox_->left(); }
    /// The next one that ends, which may have ended long ago. Cancelling this future only gives up
    /// waiting: what arrives is kept for the next call. Throws `UsageError` if none is left, or if
    /// as many calls of `next` wait already.
    [[nodiscard]] Future<Arrival<T>> next() { return inbox_->next(); }
    /// Cancels those that have not ended. They arrive as cancelled.
    void cancel() noexcept {
        for (auto const& source : sources_) source->cancel();
    }

    [[nodiscard]] Iterator begin() { return Iterator{*this}; }
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

private:
    struct Inbox;

    std::vector<std::shared_ptr<detail::State<T>>> sources_;
    std::shared_ptr<Inbox> inbox_;
};

/// Where arrivals meet those who wait for them.
template <class T>
struct Arrivals<T>::Inbox {
    explicit Inbox(std::size_t expected) : left_{expected} {}

    void put(Arrival<T> arrival) {
        for (;;) {
            std::optional<Promise<Arrival<T>>> promise;
            {
                std::scoped_lock const lock{mutex_};
                if (waiting_.empty()) {
                    arrived_.push_back(std::move(arrival));
                    return;
                }
                promise.emplace(std::move(waiting_.front()));
                waiting_.pop_front();
                --left_;
            }
            // A promise whose future was cancelled takes nothing.
            if (promise->set_value(std::move(arrival))) return;
            std::scoped_lock const lock{mutex_};
            ++left_;
        }
    }
    [[nodiscard]] Future<Arrival<T>> next() {
        Promise<Arrival<T>> promise{context};
        auto future = promise.get_future();
        std::optional<Arrival<T>> ready;
        {
            std::scoped_lock const lock{mutex_};
            if (!arrived_.empty()) {
                ready.emplace(std::move(arrived_.front()));
                arrived_.pop_front();
                --left_;
            } else {
                std::erase_if(waiting_, [](auto const& each) { return each.done(); });
                if (waiting_.size() >= left_) {
                    detail::usage_error("Arrivals::next: nothing is left to arrive").raise();
                }
                waiting_.push_back(std::move(promise));
            }
        }
        if (ready) promise.set_value(*std::move(ready));
        return future;
    }
    [[nodiscard]] std::size_t left() const {
        std::scoped_lock const lock{mutex_};
        return left_;
    }

    std::shared_ptr<detail::CallContext> context{};

private:
    mutable std::mutex mutex_;  // guards what follows; never held while others' code runs
    std::deque<Arrival<T>> arrived_{};
    std::deque<Promise<Arrival<T>>> waiting_{};
    std::size_t left_;
};

/// Blocks for each arrival. An input iterator.
template <class T>
class Arrivals<T>::Iterator {
public:
    using value_type = Arrival<T>;
    using difference_type = std::ptrdiff_t;

    explicit Iterator(Arrivals& arrivals) : arrivals_{&arrivals} { ++*this; }
    Iterator(Iterator&&) noexcept = default;
    Iterator& operator=(Iterator&&) noexcept = default;

    [[nodiscard]] Arrival<T>& operator*() const noexcept { return *current_; }
    [[nodiscard]] Arrival<T>* operator->() const noexcept { return &*current_; }
    Iterator& operator++() {
        current_.reset();
        if (arrivals_->left() > 0) current_.emplace(arrivals_->next().get());
        return *this;
    }
    void operator++(int) { ++*this; }
    [[nodiscard]] bool operator==(std::default_sentinel_t) const noexcept { return !current_; }

private:
    Arrivals* arrivals_;
    mutable std::optional<Arrival<T>> current_{};
};

/// Calls `fn` for each element of `range`, in order, so that at most `limit` of the futures it
/// returns are pending, and completes when the last of them has ended. What they hold is dropped.
///
///     tinkxx::for_each_limited(prompts, 500, [&](auto const& prompt) {
///         return sampler.sample(prompt, params).then([&](auto response) { … });
///     }).get();
///
/// The first failure, an exception of `fn` or of the range among them, ends it: no more calls are
/// started, those under way are cancelled, and the new future fails with it once they have ended.
/// So it is safe for `fn` to use what outlives the new future. Cancelling does the same, but
/// completes the new future at once.
///
/// `fn` is called on this thread at first, then on the callback executor, where it must not block;
/// never by two threads at once. `range` may make its elements as it goes: it is read only when
/// there is room. One that is passed as an lvalue is not copied and must outlive the new future; an
/// element that the range makes is there until `fn` returns. Throws `UsageError` if `limit` is 0.
template <class Range, class Fn>
    requires(detail::makes_futures<Fn, Range>)
[[nodiscard]] Future<void> for_each_limited(Range&& range, std::size_t limit, Fn fn) {
    using Run = detail::Limited<detail::Held<Range>, Fn, detail::DropValues, void>;
    return Run::start("for_each_limited", detail::hold(std::forward<Range>(range)), limit,
                      std::move(fn));
}

/// As `for_each_limited`, but completes with what the futures held, in the order of the elements.
template <class Range, class Fn>
    requires(detail::makes_futures<Fn, Range> &&
             !std::is_void_v<detail::Unwrapped<Fn&, detail::Element<Range>>>)
[[nodiscard]] auto map_limited(Range&& range, std::size_t limit, Fn fn)
    -> Future<std::vector<detail::Unwrapped<Fn&, detail::Element<Range>>>> {
    using Value = detail::Unwrapped<Fn&, detail::Element<Range>>;
    using Run =
        detail::Limited<detail::Held<Range>, Fn, detail::KeepValues<Value>, std::vector<Value>>;
    return Run::start("map_limited", detail::hold(std::forward<Range>(range)), limit,
                      std::move(fn));
}

}  // namespace tinkxx
