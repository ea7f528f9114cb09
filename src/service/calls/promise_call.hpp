#pragma once

#include <tinkxx/future.hpp>
#include <tinkxx/runtime.hpp>

#include "service/calls/session_call.hpp"

#include <memory>
#include <utility>

namespace tinkxx::service {

/// A call that keeps a promise: it ends if the future is cancelled. `Base` is a `SessionCall`.
template <class T, class Base = SessionCall>
class PromiseCall : public Base {
public:
    using Answer = T;

    /// Goes to the loop. Any thread, once.
    void launch() {
        promise_.on_cancel(this->canceller());
        Base::launch();
    }

protected:
    template <class... Args>
    explicit PromiseCall(Promise<T> promise, Args&&... args)
        : Base{std::forward<Args>(args)...}, promise_{std::move(promise)} {}

    /// It is over, with this result. May destroy it, unless the caller keeps it.
    void keep(Result<T> result) {
        auto const keep_alive = this->leave();
        promise_.set_result(std::move(result));
    }

private:
    bool answered() const final { return promise_.done(); }
    void answer(Error error) final { promise_.set_error(std::move(error)); }

    Promise<T> promise_;
};

/// Makes a call of a promise and `args`, has `prepare` look at it, and launches it. Any thread.
template <class Call, class Prepare, class... Args>
[[nodiscard]] Future<typename Call::Answer> launch_prepared(Runtime const& runtime,
                                                            Prepare const& prepare,
                                                            Args&&... args) {
    Promise<typename Call::Answer> promise{runtime};
    auto future = promise.get_future();
    auto const call = std::make_shared<Call>(std::move(promise), std::forward<Args>(args)...);
    prepare(*call);
    call->launch();
    return future;
}

/// As above, without a look.
template <class Call, class... Args>
[[nodiscard]] Future<typename Call::Answer> launch(Runtime const& runtime, Args&&... args) {
    return launch_prepared<Call>(
        runtime, [](Call&) {}, std::forward<Args>(args)...);
}

}  // namespace tinkxx::service
