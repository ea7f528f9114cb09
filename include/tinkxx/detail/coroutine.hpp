#pragma once

// What makes futures awaitable and coroutines return them. Included by <tinkxx/future.hpp>.

#include <tinkxx/detail/continuations.hpp>

#include <concepts>
#include <coroutine>
#include <memory>
#include <type_traits>
#include <utility>

namespace tinkxx::detail {

/// Whether this compiler destroys each temporary of an expression with `co_await` once. g++ 12
/// destroys a braced or defaulted argument that owns memory twice.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
inline constexpr bool awaits_temporaries = false;
#else
inline constexpr bool awaits_temporaries = true;
#endif

/// The part of a coroutine's promise that awaiting needs.
class CoroutineBase {
public:
    CoroutineBase() noexcept = default;
    CoroutineBase(CoroutineBase const&) = delete;
    CoroutineBase& operator=(CoroutineBase const&) = delete;

    /// The coroutine is about to await `source`: it belongs to the same runtime, and cancelling
    /// its future cancels `source`, unless others share that.
    void awaits(std::shared_ptr<StateBase> const& source, Sharing sharing) {
        own().adopt(source->context());
        own().on_cancel(sharing == Sharing::exclusive ? cancels(source) : Task{});
    }

protected:
    ~CoroutineBase() = default;
    [[nodiscard]] virtual StateBase& own() noexcept = 0;
};

/// Lives in the frame of the coroutine that awaits, and is the continuation that resumes it.
template <class T, Sharing sharing>
class Awaiter final : public Continuation {
public:
    explicit Awaiter(std::shared_ptr<State<T>> state) noexcept
        : Continuation{Where::executor}, state_{std::move(state)} {}

    [[nodiscard]] bool await_ready() const noexcept { return false; }

    template <class P>
    bool await_suspend(std::coroutine_handle<P> handle) {
        if (!state_) usage_error("co_await: the future is empty or was consumed").raise();
        if constexpr (std::derived_from<P, CoroutineBase>) {
            is_ours_ = true;
            handle.promise().awaits(state_, sharing);
        }
        handle_ = handle;
        // From a true answer on, the coroutine may be resumed, and this be gone, at any moment.
        auto const keep_alive = state_;
        return keep_alive->attach_unless_ready(*this);
    }

    decltype(auto) await_resume() {
        if (dropped_) cancelled_error().raise();
        if (auto const* error = state_->error()) error->raise();
        if constexpr (std::is_void_v<T>) {
            return;
        } else if constexpr (sharing == Sharing::shared) {
            return std::as_const(state_->value());
        } else {
            return T(std::move(state_->value()));
        }
    }

    void run(StateBase&) override { handle_.resume(); }
    void drop() noexcept override {
        // A coroutine of ours ends here, which abandons its future. Another library's cannot be
        // destroyed behind its back: it learns of the end by an exception.
        if (is_ours_) return handle_.destroy();
        dropped_ = true;
        handle_.resume();
    }

private:
    std::shared_ptr<State<T>> state_;
    std::coroutine_handle<> handle_;
    bool is_ours_{false};
    bool dropped_{false};
};

/// The promise of a coroutine that returns `Future<T>`. The coroutine starts at once.
template <class T>
class CoroutinePromiseBase : public CoroutineBase {
public:
    [[nodiscard]] Future<T> get_return_object() { return FutureAccess::make(state_); }
    [[nodiscard]] std::suspend_never initial_suspend() const noexcept { return {}; }
    [[nodiscard]] std::suspend_never final_suspend() noexcept {
        // Here and not in `return_value`: the coroutine's locals are gone by now.
        if (claimed_) state_->finish();
        claimed_ = false;
        return {};
    }
    void unhandled_exception() noexcept {
        if (claimed_ || claim()) state_->fail(current_error());
    }

protected:
    // A frame that is destroyed while it is suspended never reached its end.
    ~CoroutinePromiseBase() { state_->abandon(); }

    bool claim() noexcept { return claimed_ = state_->claim(); }
    [[nodiscard]] StateBase& own() noexcept override { return *state_; }

    std::shared_ptr<State<T>> const state_{std::make_shared<State<T>>(nullptr)};

private:
    bool claimed_{false};
};

template <class T>
class CoroutinePromise final : public CoroutinePromiseBase<T> {
public:
    template <class U = T>
        requires std::is_constructible_v<T, U>
    void return_value(U&& value) {
        if (this->claim()) this->state_->emplace(std::forward<U>(value));
    }
};

template <>
class CoroutinePromise<void> final : public CoroutinePromiseBase<void> {
public:
    void return_void() {
        if (claim()) state_->emplace();
    }
};

}  // namespace tinkxx::detail
