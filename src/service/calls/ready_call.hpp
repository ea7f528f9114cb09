#pragma once

#include <tinkxx/future.hpp>

#include "service/calls/promise_call.hpp"

#include <memory>
#include <string>
#include <utility>

namespace tinkxx::service {

/// Gives what `fn` reads once the session, or the sampler, is ready.
template <class T, class Fn>
class ReadyCall final : public PromiseCall<T> {
public:
    ReadyCall(Promise<T> promise, std::shared_ptr<ClientCore> core,
              std::shared_ptr<Sampler> sampler, std::string name, Fn fn)
        : PromiseCall<T>{std::move(promise), std::move(core), std::move(sampler), std::move(name)},
          fn_{std::move(fn)} {}

private:
    void go() override {
        Result<T> result = fn_();
        if (!result) return this->fail(result.error());
        this->keep(std::move(result));
    }

    Fn fn_;
};

/// `fn` gives a `Result<T>`, on the loop. `sampler` is null if the session will do.
template <class T, class Fn>
[[nodiscard]] Future<T> once_ready(Runtime const& runtime, std::shared_ptr<ClientCore> core,
                                   std::shared_ptr<Sampler> sampler, std::string name, Fn fn) {
    return launch<ReadyCall<T, Fn>>(runtime, std::move(core), std::move(sampler), std::move(name),
                                    std::move(fn));
}

}  // namespace tinkxx::service
