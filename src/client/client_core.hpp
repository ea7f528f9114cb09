#pragma once

#include <tinkxx/future.hpp>
#include <tinkxx/runtime.hpp>

#include "client/resolved_options.hpp"
#include "service/sampling/sampling_shared.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace tinkxx::client {

/// A holder and what its clients share; a shadow, which needs a snapshot, is shared with others of
/// the same session and options. Any thread.
[[nodiscard]] std::shared_ptr<service::SamplingShared> make_core(
    Runtime const& runtime, service::HolderConfig const& config, ResolvedOptions const& options,
    service::HolderKind kind, std::shared_ptr<Transport> const& transport,
    std::optional<service::SessionSnapshot> const& snapshot);

/// Waits until a holder is ready, and gives what `fn` reads from it.
template <class T, class Fn>
class AfterStart final : public std::enable_shared_from_this<AfterStart<T, Fn>>,
                         private service::ReadyWaiter {
public:
    AfterStart(std::shared_ptr<service::SamplingShared> shared, std::string name,
               Promise<T> promise, Fn fn)
        : shared_{std::move(shared)},
          name_{std::move(name)},
          promise_{std::move(promise)},
          fn_{std::move(fn)} {}

    void launch() {
        shared_->scheduler().post([waiting = this->shared_from_this()] { waiting->begin(); });
    }

private:
    void begin() {
        if (promise_.done()) return;
        if (auto refusal = shared_->refusal(name_)) {
            promise_.set_error(*std::move(refusal));
            return;
        }
        self_ = this->shared_from_this();
        shared_->attach();
        shared_->holder().when_ready(*this);
    }
    void on_ready(Result<void> outcome) override {
        auto const keep_alive = std::move(self_);
        if (outcome) {
            promise_.set_result(fn_(*shared_));
        } else {
            promise_.set_error(outcome.error());
        }
    }

    std::shared_ptr<service::SamplingShared> const shared_;
    std::string const name_;
    Promise<T> promise_;
    Fn fn_;
    std::shared_ptr<AfterStart> self_{};  // while it waits; loop thread only
};

template <class T, class Fn>
[[nodiscard]] Future<T> after_start(Runtime const& runtime,
                                    std::shared_ptr<service::SamplingShared> shared,
                                    std::string name, Fn fn) {
    Promise<T> promise{runtime};
    auto future = promise.get_future();
    std::make_shared<AfterStart<T, Fn>>(std::move(shared), std::move(name), std::move(promise),
                                        std::move(fn))
        ->launch();
    return future;
}

}  // namespace tinkxx::client
