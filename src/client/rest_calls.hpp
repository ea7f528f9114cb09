#pragma once

#include <tinkxx/service_client.hpp>

#include "client/service_impl.hpp"
#include "service/calls/request_call.hpp"
#include "service/rest/asking_call.hpp"
#include "service/rest/download_call.hpp"
#include "service/rest/rest_order.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tinkxx::client {

/// What REST and admin clients are made of: a service client, of which they use the part without a
/// session, and how calls are made. Any thread.
class RestCalls {
public:
    /// `own`: nobody else has that service client.
    RestCalls(ServiceClient service, bool own, CallOptions call)
        : service_{std::move(service)}, own_{own}, call_{std::move(call)} {}

    [[nodiscard]] ServiceClient const& service() const noexcept { return service_; }
    [[nodiscard]] Runtime const& runtime() const noexcept { return service_.runtime(); }
    [[nodiscard]] RestCalls with(CallOptions call) const {
        return {service_, own_, std::move(call)};
    }
    [[nodiscard]] Future<void> close() const {
        return own_ ? service_.close() : make_ready_future();
    }

    /// Asks once, with retries, and reads the answer. `may_repeat` may be empty.
    template <class T>
    [[nodiscard]] Future<T> ask(std::string_view operation, service::RestRequest request,
                                typename service::RequestCall<T>::Decode decode,
                                std::function<bool(Error const&)> may_repeat = {}) const {
        if (auto no = problem(operation)) return make_failed_future<T>(Error{*std::move(no)});
        auto const core = service_.impl_->sessionless();
        return service::launch_prepared<service::RequestCall<T>>(
            runtime(),
            [&](auto& call) {
                call.set_call(call_.deadline, call_.metadata);
                call.repeat_if(std::move(may_repeat));
            },
            core, nullptr, std::string{operation}, order(*core, std::move(request)),
            service::Repeat::submit_loop, std::move(decode));
    }
    /// Asks until `machine` has its answer. `change` is given each request before it is sent.
    template <class Machine>
    [[nodiscard]] Future<typename Machine::Value> ask_until(
        std::string_view operation, service::RestRequest request, Machine machine,
        std::function<void(service::HttpOrder&)> change = {}) const {
        using Value = typename Machine::Value;
        if (auto no = problem(operation)) return make_failed_future<Value>(Error{*std::move(no)});
        auto const core = service_.impl_->sessionless();
        return service::launch_prepared<service::AskingCall<Machine>>(
            runtime(), [&](auto& call) { call.set_call(call_.deadline, call_.metadata); }, core,
            std::string{operation},
            [make = order(*core, std::move(request)),
             change = std::move(change)](service::ClientCore& ready) {
                auto made = make(ready);
                if (change) change(made);
                return made;
            },
            std::move(machine));
    }

    /// Fetches the files of a checkpoint.
    [[nodiscard]] Future<DownloadedCheckpoint> download(std::string_view operation,
                                                        service::DownloadOrder order) const;

private:
    using MakeOrder = std::function<service::HttpOrder(service::ClientCore&)>;

    /// Why no call can be made, or nothing.
    [[nodiscard]] std::optional<ErrorDetails> problem(std::string_view operation) const;
    /// Makes the order of a request, with the lines of the caller's trace.
    [[nodiscard]] MakeOrder order(service::ClientCore const& core,
                                  service::RestRequest request) const;

    ServiceClient service_;
    bool own_;
    CallOptions call_;
};

}  // namespace tinkxx::client
