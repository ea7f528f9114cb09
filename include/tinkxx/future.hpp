#pragma once

#include <tinkxx/detail/continuations.hpp>
#include <tinkxx/detail/coroutine.hpp>
#include <tinkxx/detail/future_state.hpp>
#include <tinkxx/result.hpp>
#include <tinkxx/runtime.hpp>

#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace tinkxx {

/// The pending result of a call that is already on its way.
///
/// Move-only and one-shot, like `std::future`: `get`, `result`, `then`, `then_result`, `share`
/// and `co_await` each consume it; using it again throws `UsageError`. Dropping a future abandons
/// its result but does not stop the request; `cancel` does.
///
/// Threads: one thread at a time may use a future; only `cancel` may be called while another
/// thread waits in `get`, `result`, `wait` or `wait_for`. Waiting for a pending future on a thread
/// of its runtime, or inside one of its callbacks, throws `UsageError`, since it would deadlock. On
/// a runtime without threads, waiting runs the loop.
///
/// Continuations run on the callback executor of the runtime that the future belongs to. A future
/// that belongs to no runtime (`make_ready_future`, or a `Promise` without one) runs them at once,
/// on the thread that completes it or that attaches them.
///
/// A future can also be the return type of a coroutine. The coroutine starts on its caller's
/// thread, runs up to its first pending `co_await`, and belongs to the runtime of the first future
/// that it awaits. With g++ 12, start a call in one statement and await it in the next: that
/// compiler destroys some arguments of `co_await sampler.sample(prompt, {…})` twice, so awaiting a
/// temporary future does not compile there.
template <class T>
class [[nodiscard]] Future {
public:
    static_assert(!std::is_reference_v<T>, "a future holds a value; use a pointer");
    using value_type = T;
    using promise_type = detail::CoroutinePromise<T>;

    /// An empty future: every member except `valid` and `cancel` throws `UsageError`.
    Future() noexcept = default;
    Future(Future&&) noexcept = default;
    Future& operator=(Future&&) noexcept = default;
    Future(Future const&) = delete;
    Future& operator=(Future const&) = delete;
    ~Future() = default;

    /// True until the result has been consumed; false for an empty future.
    [[nodiscard]] bool valid() const noexcept { return state_ != nullptr && !consumed_; }
    /// Whether `get` would not block.
    [[nodiscard]] bool ready() const { return checked().ready(); }

    /// Blocks until the call has ended. Returns the value, or throws the `Error`.
    T get() {
        if (auto const how = checked().wait(std::nullopt); how != detail::Waited::ready) {
            detail::StateBase::refuse(how, {});
        }
        return value_of(consume());
    }
    /// As `get()`, for at most `limit`; then throws `TimeoutError`, consumes nothing and leaves
    /// the call running.
    T get(std::chrono::milliseconds limit) {
        if (auto const how = checked().wait(limit); how != detail::Waited::ready) {
            detail::StateBase::refuse(how, limit);
        }
        return value_of(consume());
    }
    /// As `get()`, but reports failure as a value.
    Result<T> result() {
        if (auto const how = checked().wait(std::nullopt); how != detail::Waited::ready) {
            detail::StateBase::refuse(how, {});
        }
        auto& state = consume();
        if (auto const* error = state.error()) return *error;
        if constexpr (std::is_void_v<T>) {
            return {};
        } else {
            return Result<T>{std::move(state.value())};
        }
    }
    /// Blocks until the call has ended. Consumes nothing.
    void wait() const {
        if (auto const how = checked().wait(std::nullopt); how != detail::Waited::ready) {
            detail::StateBase::refuse(how, {});
        }
    }
    /// True once `get` would not block. False after `limit` otherwise; nothing is consumed.
    [[nodiscard]] bool wait_for(std::chrono::milliseconds limit) const {
        return checked().wait(limit) == detail::Waited::ready;
    }

    /// Runs `fn(T)` (`fn()` for void) on the runtime's callback executor, never on this stack.
    /// If the call fails, `fn` is not called and the new future fails with the same error. If `fn`
    /// returns a `Future`, the result is flattened. An exception from `fn` becomes a
    /// `CallbackError`; an `Error` is passed on unchanged. Cancelling the new future cancels this
    /// one, or the one that `fn` returned.
    template <class Fn>
        requires(detail::takes<Fn, T>)
    auto then(Fn fn) -> Future<detail::Continued<Fn, T>> {
        using U = detail::Continued<Fn, T>;
        using Kind = detail::Then<T, Fn, U, detail::Sharing::exclusive>;
        return detail::chain<Kind, U>(take(), std::move(fn), detail::Sharing::exclusive);
    }
    /// As `then`, but `fn(Result<T>)` also receives errors, and is called even if the new future
    /// was cancelled or the runtime was shut down. After a shutdown there is no executor, so `fn`
    /// runs on the thread that ends the call or shuts the runtime down, and must return quickly. It
    /// is not called if the process exits first.
    template <class Fn>
        requires std::invocable<Fn, Result<T>>
    auto then_result(Fn fn) -> Future<detail::Unwrapped<Fn, Result<T>>> {
        using U = detail::Unwrapped<Fn, Result<T>>;
        using Kind = detail::ThenResult<T, Fn, U>;
        return detail::chain<Kind, U>(take(), std::move(fn), detail::Sharing::exclusive);
    }
    /// Turns this future into a copyable one that can be read repeatedly.
    SharedFuture<T> share() { return SharedFuture<T>{take()}; }

    /// Stops waiting, polling and retrying: a pending future completes at once with
    /// `ErrorKind::cancelled`. May be called from any thread and repeatedly; has no effect on a
    /// future that is complete or empty.
    void cancel() noexcept {
        if (auto const state = state_) state->cancel();
    }

    /// Resumes on the runtime's callback executor. Does not suspend if the future is ready.
    [[nodiscard]] auto operator co_await() & noexcept {
        return detail::Awaiter<T, detail::Sharing::exclusive>{valid() ? std::move(state_)
                                                                      : nullptr};
    }
    template <bool possible = detail::awaits_temporaries>
    [[nodiscard]] auto operator co_await() && noexcept {
        static_assert(possible,
                      "g++ 12 destroys arguments twice in `co_await call(…)`; write "
                      "`auto pending = call(…);` and then `co_await pending`");
        return operator co_await();  // as an lvalue
    }

private:
    friend struct detail::FutureAccess;
    friend class Promise<T>;
    explicit Future(std::shared_ptr<detail::State<T>> state) noexcept : state_{std::move(state)} {}

    [[nodiscard]] detail::State<T>& checked() const {
        if (!valid()) detail::usage_error("the future is empty or was consumed").raise();
        return *state_;
    }
    // Leaves `state_` in place: `cancel` may be reading it.
    [[nodiscard]] detail::State<T>& consume() noexcept {
        consumed_ = true;
        return *state_;
    }
    [[nodiscard]] std::shared_ptr<detail::State<T>> take() {
        (void)checked();
        return std::move(state_);
    }
    static T value_of(detail::State<T>& state) {
        if (auto const* error = state.error()) error->raise();
        if constexpr (!std::is_void_v<T>) return std::move(state.value());
    }

    std::shared_ptr<detail::State<T>> state_;
    bool consumed_{false};
};

/// A future whose result can be read many times, from many copies. Waiting follows the rules of
/// `Future`; every member may be called from several threads at once.
template <class T>
class [[nodiscard]] SharedFuture {
    using Read = std::conditional_t<std::is_void_v<T>, void, std::add_lvalue_reference_t<T const>>;

public:
    using value_type = T;

    SharedFuture() noexcept = default;
    SharedFuture(Future<T> future) : SharedFuture{future.share()} {}

    [[nodiscard]] bool valid() const noexcept { return state_ != nullptr; }
    [[nodiscard]] bool ready() const { return checked().ready(); }

    /// Blocks until the call has ended. Returns a reference that stays valid as long as one of the
    /// handles, or throws the `Error`.
    Read get() const {
        wait();
        return value_of(checked());
    }
    /// As `get()`, for at most `limit`; then throws `TimeoutError`.
    Read get(std::chrono::milliseconds limit) const {
        if (auto const how = checked().wait(limit); how != detail::Waited::ready) {
            detail::StateBase::refuse(how, limit);
        }
        return value_of(checked());
    }
    /// As `get()`, but reports failure as a value, and the value as a copy.
    Result<T> result() const
        requires(std::is_void_v<T> || std::copy_constructible<T>)
    {
        wait();
        if (auto const* error = checked().error()) return *error;
        if constexpr (std::is_void_v<T>) {
            return {};
        } else {
            return Result<T>{std::as_const(checked().value())};
        }
    }
    void wait() const {
        if (auto const how = checked().wait(std::nullopt); how != detail::Waited::ready) {
            detail::StateBase::refuse(how, {});
        }
    }
    [[nodiscard]] bool wait_for(std::chrono::milliseconds limit) const {
        return checked().wait(limit) == detail::Waited::ready;
    }

    /// As `Future::then`, with `fn(T const&)`; may be called repeatedly. Cancelling the new future
    /// does not cancel this one, since others may wait for it.
    template <class Fn>
        requires(detail::takes<Fn, Read>)
    auto then(Fn fn) const -> Future<detail::Continued<Fn, Read>> {
        using U = detail::Continued<Fn, Read>;
        using Kind = detail::Then<T, Fn, U, detail::Sharing::shared>;
        (void)checked();
        return detail::chain<Kind, U>(state_, std::move(fn), detail::Sharing::shared);
    }

    /// As `Future::cancel`, for all handles.
    void cancel() const noexcept {
        if (state_) state_->cancel();
    }

    /// As for `Future`; yields a reference that stays valid as long as one of the handles.
    [[nodiscard]] auto operator co_await() const& noexcept {
        return detail::Awaiter<T, detail::Sharing::shared>{state_};
    }
    template <bool possible = detail::awaits_temporaries>
    [[nodiscard]] auto operator co_await() const&& noexcept {
        static_assert(possible,
                      "g++ 12 destroys arguments twice in `co_await call(…)`; write "
                      "`auto pending = call(…);` and then `co_await pending`");
        return operator co_await();  // as an lvalue
    }

private:
    friend class Future<T>;
    explicit SharedFuture(std::shared_ptr<detail::State<T>> state) noexcept
        : state_{std::move(state)} {}

    [[nodiscard]] detail::State<T>& checked() const {
        if (!state_) detail::usage_error("the future is empty").raise();
        return *state_;
    }
    static Read value_of(detail::State<T>& state) {
        if (auto const* error = state.error()) error->raise();
        if constexpr (!std::is_void_v<T>) return state.value();
    }

    std::shared_ptr<detail::State<T>> state_;
};

/// The producing end of a `Future`: completes it, once. If the promise is destroyed first, the
/// future fails with `ErrorKind::cancelled`.
///
/// Any thread may complete it. If several do, the first wins and the others get false.
template <class T>
class Promise {
public:
    using value_type = T;

    /// Belongs to no runtime: continuations run on the completing thread.
    Promise() : Promise{std::shared_ptr<detail::CallContext>{}} {}
    /// Continuations run on `runtime`'s callback executor.
    explicit Promise(Runtime const& runtime) : Promise{runtime.context()} {}
    /// For the library's own use.
    explicit Promise(std::shared_ptr<detail::CallContext> context)
        : state_{std::allocate_shared<detail::State<T>>(detail::BlockAllocator<detail::State<T>>{},
                                                        std::move(context))} {}
    Promise(Promise&& other) noexcept : state_{std::move(other.state_)}, given_{other.given_} {}
    Promise& operator=(Promise&& other) noexcept {
        auto const old = Promise{std::move(*this)};
        state_ = std::move(other.state_);
        given_ = other.given_;
        return *this;
    }
    Promise(Promise const&) = delete;
    Promise& operator=(Promise const&) = delete;
    ~Promise() {
        if (state_) state_->abandon();
    }

    /// The future of this promise. May be called once.
    Future<T> get_future() {
        (void)checked();
        if (std::exchange(given_, true)) {
            detail::usage_error("get_future: the future of this promise was taken already").raise();
        }
        return Future<T>{state_};
    }

    /// Completes the future. Returns false and does nothing if it is complete already, for example
    /// because it was cancelled.
    template <class... Args>
        requires std::constructible_from<detail::Stored<T>, Args...>
    bool set_value(Args&&... args) {
        auto const state = checked();
        if (!state->claim()) return false;
        state->emplace(std::forward<Args>(args)...);
        state->finish();
        return true;
    }
    bool set_error(Error error) {
        auto const state = checked();
        if (!state->claim()) return false;
        state->fail(std::move(error));
        state->finish();
        return true;
    }
    bool set_result(Result<T> result) {
        if (!result) return set_error(result.error());
        if constexpr (std::is_void_v<T>) {
            return set_value();
        } else {
            return set_value(*std::move(result));
        }
    }

    /// Calls `handler` once if the owner of the future cancels it, on the thread that does so, or
    /// at once if it was cancelled already. Replaces an earlier handler. The handler is destroyed
    /// when the future completes in another way.
    void on_cancel(Task handler) { checked()->on_cancel(std::move(handler)); }
    /// Whether the future has been completed or cancelled.
    [[nodiscard]] bool done() const { return checked()->ready(); }

private:
    friend struct detail::FutureAccess;

    // A copy: completing runs code that may destroy this promise.
    [[nodiscard]] std::shared_ptr<detail::State<T>> checked() const {
        if (!state_) detail::usage_error("the promise was moved from").raise();
        return state_;
    }

    std::shared_ptr<detail::State<T>> state_;
    bool given_{false};
};

/// A completed future that belongs to no runtime.
template <class T>
[[nodiscard]] Future<std::decay_t<T>> make_ready_future(T&& value) {
    Promise<std::decay_t<T>> promise;
    promise.set_value(std::forward<T>(value));
    return promise.get_future();
}
[[nodiscard]] inline Future<void> make_ready_future() {
    Promise<void> promise;
    promise.set_value();
    return promise.get_future();
}
template <class T>
[[nodiscard]] Future<T> make_failed_future(Error error) {
    Promise<T> promise;
    promise.set_error(std::move(error));
    return promise.get_future();
}

/// Completes with all values, in order, once every future has completed, or fails with the first
/// failure and cancels the others. Cancelling it cancels them all. Belongs to the runtime of the
/// first future that has one.
template <class T>
[[nodiscard]] auto when_all(std::vector<Future<T>> futures) {
    using Answer = std::conditional_t<std::is_void_v<T>, void, std::vector<detail::Stored<T>>>;
    using Values = std::conditional_t<std::is_void_v<T>, detail::NoValues,
                                      detail::VectorValues<detail::Stored<T>>>;
    std::vector<std::shared_ptr<detail::State<T>>> sources;
    sources.reserve(futures.size());
    for (auto& future : futures) sources.push_back(detail::FutureAccess::take(future));

    using Joined = detail::Join<Values, Answer>;
    auto const join = std::make_shared<Joined>(detail::erased(sources));
    auto all = join->start();
    if constexpr (!std::is_void_v<T>) join->values().slots.resize(sources.size());
    for (std::size_t i = 0; i < sources.size(); ++i) {
        detail::join_part(sources[i], join, [i](Values& values, detail::Stored<T>&& value) {
            if constexpr (!std::is_void_v<T>) {
                values.slots[i].emplace(std::move(value));
            } else {
                (void)values, (void)i, (void)value;
            }
        });
    }
    if (sources.empty()) join->deliver_nothing();
    return all;
}

/// As above, for futures of different types; `std::monostate` stands for void.
template <class... T>
[[nodiscard]] Future<std::tuple<detail::Stored<T>...>> when_all(Future<T>... futures) {
    using Values = detail::TupleValues<T...>;
    using Joined = detail::Join<Values, std::tuple<detail::Stored<T>...>>;
    std::tuple<std::shared_ptr<detail::State<T>>...> const sources{
        detail::FutureAccess::take(futures)...};
    auto const join = std::apply(
        [](auto const&... source) {
            return std::make_shared<Joined>(
                std::vector<std::shared_ptr<detail::StateBase>>{source...});
        },
        sources);
    auto all = join->start();
    [&]<std::size_t... i>(std::index_sequence<i...>) {
        (detail::join_part(
             std::get<i>(sources), join,
             [](Values& values, auto&& value) {
                 std::get<i>(values.slots).emplace(std::forward<decltype(value)>(value));
             }),
         ...);
    }(std::index_sequence_for<T...>{});
    if constexpr (sizeof...(T) == 0) join->deliver_nothing();
    return all;
}

/// @cond
namespace detail {
inline void NoValues::deliver(Promise<void>& promise) { promise.set_value(); }
}  // namespace detail
/// @endcond

}  // namespace tinkxx
