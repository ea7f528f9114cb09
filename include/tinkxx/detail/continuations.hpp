#pragma once

// The continuations behind `then`, `when_all` and flattening. Included by <tinkxx/future.hpp>.

#include <tinkxx/detail/future_state.hpp>
#include <tinkxx/detail/process.hpp>
#include <tinkxx/result.hpp>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace tinkxx {

template <class T>
class Future;
template <class T>
class SharedFuture;
template <class T>
class Promise;

namespace detail {

template <class T>
struct Unwrap {
    using type = T;
    static constexpr bool is_future = false;
};
template <class T>
struct Unwrap<Future<T>> {
    using type = T;
    static constexpr bool is_future = true;
};

template <class Fn, class... Args>
using Answer = std::invoke_result_t<Fn, Args...>;
/// What the future of a continuation holds: what `Fn` returns, and if that is a future, what that
/// one holds.
template <class Fn, class... Args>
using Unwrapped = typename Unwrap<std::remove_cvref_t<Answer<Fn, Args...>>>::type;

// `fn(T)`, but `fn()` for void.
template <class Fn, class T>
inline constexpr bool takes = std::is_invocable_v<Fn, T>;
template <class Fn>
inline constexpr bool takes<Fn, void> = std::is_invocable_v<Fn>;

template <class Fn, class T>
struct Invocation {};  // no type: `then` is refused where it is called
template <class Fn, class T>
    requires std::is_invocable_v<Fn, T>
struct Invocation<Fn, T> {
    using type = Unwrapped<Fn, T>;
};
template <class Fn>
    requires std::is_invocable_v<Fn>
struct Invocation<Fn, void> {
    using type = Unwrapped<Fn>;
};
template <class Fn, class T>
using Continued = typename Invocation<Fn, T>::type;

/// Lets the library itself see into futures and promises.
struct FutureAccess {
    template <class T>
    [[nodiscard]] static Future<T> make(std::shared_ptr<State<T>> state) noexcept {
        return Future<T>{std::move(state)};
    }
    /// Leaves `future` empty; throws `UsageError` if it is.
    template <class T>
    [[nodiscard]] static std::shared_ptr<State<T>> take(Future<T>& future) {
        return future.take();
    }
    template <class T>
    [[nodiscard]] static std::shared_ptr<State<T>> const& state(
        Promise<T> const& promise) noexcept {
        return promise.state_;
    }
};

/// A handler for `on_cancel`: cancels `source`, if it is still there.
[[nodiscard]] inline Task cancels(std::shared_ptr<StateBase> const& source) {
    return [weak = std::weak_ptr{source}] {
        if (auto const state = weak.lock()) state->cancel();
    };
}

/// Completes `promise` as `state` is; takes its value.
template <class T>
void complete_from(Promise<T>& promise, State<T>& state) {
    if (auto const* error = state.error()) {
        promise.set_error(*error);
    } else if constexpr (std::is_void_v<T>) {
        promise.set_value();
    } else {
        promise.set_value(std::move(state.value()));
    }
}

/// Hands the result of a future that a continuation returned on to the one that stands for it.
template <class T>
class Forward final : public Continuation {
public:
    explicit Forward(Promise<T> promise) noexcept
        : Continuation{Where::here}, promise_{std::move(promise)} {}
    void run(StateBase& state) override {
        std::unique_ptr<Forward> const own{this};
        complete_from(promise_, static_cast<State<T>&>(state));
    }
    void drop() noexcept override { delete this; }

private:
    Promise<T> promise_;
};

/// Completes `promise` by what `fn(args...)` returns, later if that is a future.
template <class U, class Fn, class... Args>
void complete_by(Promise<U>& promise, Fn&& fn, Args&&... args) {
    using R = std::remove_cvref_t<Answer<Fn, Args...>>;
    try {
        if constexpr (Unwrap<R>::is_future) {
            auto inner = std::invoke(std::forward<Fn>(fn), std::forward<Args>(args)...);
            auto const state = FutureAccess::take(inner);
            promise.on_cancel(cancels(state));
            state->attach(ContinuationPtr{new Forward<U>{std::move(promise)}});
        } else if constexpr (std::is_void_v<R>) {
            std::invoke(std::forward<Fn>(fn), std::forward<Args>(args)...);
            promise.set_value();
        } else {
            promise.set_value(std::invoke(std::forward<Fn>(fn), std::forward<Args>(args)...));
        }
    } catch (...) {
        promise.set_error(current_error());
    }
}

enum class Sharing : bool { exclusive, shared };

/// Behind `then`: `fn` gets the value, and errors pass it by.
template <class T, class Fn, class U, Sharing sharing>
class Then final : public Continuation {
public:
    Then(Promise<U> promise, Fn fn)
        : Continuation{Where::executor}, promise_{std::move(promise)}, fn_{std::move(fn)} {}
    void run(StateBase& base) override {
        std::unique_ptr<Then> const own{this};
        auto& state = static_cast<State<T>&>(base);
        if (auto const* error = state.error()) {
            promise_.set_error(*error);
        } else if (FutureAccess::state(promise_)->ready()) {
            return;  // cancelled in the meantime: nobody wants it any more
        } else if constexpr (std::is_void_v<T>) {
            complete_by(promise_, std::move(fn_));
        } else if constexpr (sharing == Sharing::shared) {
            complete_by(promise_, std::move(fn_), std::as_const(state.value()));
        } else {
            complete_by(promise_, std::move(fn_), std::move(state.value()));
        }
    }
    void drop() noexcept override { delete this; }

private:
    Promise<U> promise_;
    Fn fn_;
};

/// Behind `then_result`: `fn` gets value or error, and is called even if its own future was
/// cancelled.
template <class T, class Fn, class U>
class ThenResult final : public Continuation {
public:
    ThenResult(Promise<U> promise, Fn fn)
        : Continuation{Where::executor}, promise_{std::move(promise)}, fn_{std::move(fn)} {}
    void run(StateBase& base) override {
        std::unique_ptr<ThenResult> const own{this};
        auto& state = static_cast<State<T>&>(base);
        if (auto const* error = state.error()) {
            complete_by(promise_, std::move(fn_), Result<T>{*error});
        } else if constexpr (std::is_void_v<T>) {
            complete_by(promise_, std::move(fn_), Result<void>{});
        } else {
            complete_by(promise_, std::move(fn_), Result<T>{std::move(state.value())});
        }
    }
    void drop() noexcept override { delete this; }
    void refused(StateBase& base) noexcept override {
        if (process_ends()) return drop();  // what `fn` uses may be gone with `main`
        run(base);
    }

private:
    Promise<U> promise_;
    Fn fn_;
};

/// Attaches a continuation of that kind to `source`; cancelling its future cancels `source` too,
/// unless others share it.
template <class Kind, class U, class T, class Fn>
[[nodiscard]] Future<U> chain(std::shared_ptr<State<T>> const& source, Fn&& fn, Sharing sharing) {
    Promise<U> promise{source->context()};
    auto future = promise.get_future();
    if (sharing == Sharing::exclusive) promise.on_cancel(cancels(source));
    source->attach(ContinuationPtr{new Kind{std::move(promise), std::forward<Fn>(fn)}});
    return future;
}

/// Calls `fn(Result<T>)` without a future of its own. What it throws is logged by the runtime.
template <class T, class Fn>
class Notify final : public Continuation {
public:
    Notify(Fn fn, Where where) : Continuation{where}, fn_{std::move(fn)} {}
    void run(StateBase& base) override {
        std::unique_ptr<Notify> const own{this};
        auto& state = static_cast<State<T>&>(base);
        if (auto const* error = state.error()) {
            fn_(Result<T>{*error});
        } else if constexpr (std::is_void_v<T>) {
            fn_(Result<void>{});
        } else {
            fn_(Result<T>{std::move(state.value())});
        }
    }
    void drop() noexcept override { delete this; }
    void refused(StateBase& base) noexcept override {
        if (process_ends()) return drop();
        try {
            run(base);
        } catch (...) {
            // The runtime that would log it is shut down.
        }
    }

private:
    Fn fn_;
};

template <class T, class Fn>
void notify(std::shared_ptr<State<T>> const& source, Fn fn, Continuation::Where where) {
    source->attach(ContinuationPtr{new Notify<T, Fn>{std::move(fn), where}});
}
template <class T, class Fn>
void notify(Future<T> future, Fn fn) {
    notify(FutureAccess::take(future), std::move(fn), Continuation::Where::executor);
}

/// The same sources without their types.
template <class T>
[[nodiscard]] std::vector<std::shared_ptr<StateBase>> erased(
    std::vector<std::shared_ptr<State<T>>> const& sources) {
    return {sources.begin(), sources.end()};
}
/// That of the first source that has one.
template <class Source>
[[nodiscard]] std::shared_ptr<CallContext> context_of(
    std::vector<std::shared_ptr<Source>> const& sources) {
    for (auto const& source : sources) {
        if (auto context = source->context()) return context;
    }
    return nullptr;
}

/// Waits for several futures: collects their values, and ends all by the first failure.
///
/// Parts complete on any threads at once. Each writes its own value only; the count of those that
/// are left orders the writes before the read of all of them.
template <class Values, class Answer>
class Join : public std::enable_shared_from_this<Join<Values, Answer>> {
public:
    explicit Join(std::vector<std::shared_ptr<StateBase>> const& sources)
        : promise_{context_of(sources)},
          sources_(sources.begin(), sources.end()),
          left_{sources.size()} {}

    [[nodiscard]] Future<Answer> start() {
        promise_.on_cancel([weak = this->weak_from_this()] {
            if (auto const join = weak.lock()) join->cancel_all();
        });
        return promise_.get_future();
    }
    void part_failed(Error const& error) {
        if (promise_.set_error(error)) cancel_all();
    }
    /// Completes it before all parts are done.
    template <class Given>
    void end_with(Given&& answer) {
        if (promise_.set_value(std::forward<Given>(answer))) cancel_all();
    }
    void part_done() {
        if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) values_.deliver(promise_);
    }
    /// For a join of no parts.
    void deliver_nothing() { values_.deliver(promise_); }
    [[nodiscard]] Values& values() noexcept { return values_; }

private:
    void cancel_all() noexcept {
        for (auto const& weak : sources_) {
            if (auto const source = weak.lock()) source->cancel();
        }
    }

    Promise<Answer> promise_;
    std::vector<std::weak_ptr<StateBase>> sources_;
    std::atomic<std::size_t> left_;
    Values values_;
};

/// One future of a `Join`; `store` puts its value in place.
template <class T, class Joined, class Store>
class Part final : public Continuation {
public:
    Part(std::shared_ptr<Joined> join, Store store)
        : Continuation{Where::here}, join_{std::move(join)}, store_{std::move(store)} {}
    void run(StateBase& base) override {
        std::unique_ptr<Part> const own{this};
        auto& state = static_cast<State<T>&>(base);
        if (auto const* error = state.error()) return join_->part_failed(*error);
        try {
            store_(join_->values(), std::move(state.value()));
        } catch (...) {
            return join_->part_failed(current_error());
        }
        join_->part_done();
    }
    void drop() noexcept override { delete this; }

private:
    std::shared_ptr<Joined> join_;
    Store store_;
};

template <class T, class Joined, class Store>
void join_part(std::shared_ptr<State<T>> const& source, std::shared_ptr<Joined> join, Store store) {
    source->attach(ContinuationPtr{new Part<T, Joined, Store>{std::move(join), std::move(store)}});
}

template <class T>
struct VectorValues {
    std::vector<std::optional<T>> slots{};
    void deliver(Promise<std::vector<T>>& promise) {
        std::vector<T> all;
        all.reserve(slots.size());
        for (auto& slot : slots) all.push_back(std::move(*slot));
        promise.set_value(std::move(all));
    }
};

struct NoValues {
    void deliver(Promise<void>& promise);
};

template <class... T>
struct TupleValues {
    std::tuple<std::optional<Stored<T>>...> slots{};
    void deliver(Promise<std::tuple<Stored<T>...>>& promise) {
        std::apply(
            [&promise](auto&... slot) {
                promise.set_value(std::tuple<Stored<T>...>{std::move(*slot)...});
            },
            slots);
    }
};

}  // namespace detail
}  // namespace tinkxx
