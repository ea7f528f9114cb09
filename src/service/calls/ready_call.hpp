#pragma once

#include <tinkxx/future.hpp>

#include "service/calls/session_call.hpp"

#include <memory>
#include <string>
#include <utility>

namespace tinkxx::service {

/// Gives what `fn` reads once the session, or the sampler, is ready.
template <class T, class Fn>
class ReadyCall final : public SessionCall {
public:
    ReadyCall(std::shared_ptr<ClientCore> core, std::shared_ptr<Sampler> sampler, std::string name,
              Promise<T> promise, Fn fn)
        : SessionCall{std::move(core), std::move(sampler), std::move(name)},
          promise_{std::move(promise)},
          fn_{std::move(fn)} {}

    void launch() {
        promise_.on_cancel(canceller());
        SessionCall::launch();
    }

private:
    void go() override {
        Result<T> result = fn_();
        if (!result) return fail(result.error());
        leave();
        promise_.set_result(std::move(result));
    }
    void answer(Error error) override { promise_.set_error(std::move(error)); }
    bool answered() const override { return promise_.done(); }

    Promise<T> promise_;
    Fn fn_;
};

/// `fn` gives a `Result<T>`, on the loop. `sampler` is null if the session will do.
template <class T, class Fn>
[[nodiscard]] Future<T> once_ready(Runtime const& runtime, std::shared_ptr<ClientCore> core,
                                   std::shared_ptr<Sampler> sampler, std::string name, Fn fn) {
    Promise<T> promise{runtime};
    auto future = promise.get_future();
    std::make_shared<ReadyCall<T, Fn>>(std::move(core), std::move(sampler), std::move(name),
                                       std::move(promise), std::move(fn))
        ->launch();
    return future;
}

}  // namespace tinkxx::service
