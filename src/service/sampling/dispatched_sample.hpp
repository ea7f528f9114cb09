#pragma once

#include <tinkxx/detail/blocks.hpp>

#include "base/common/prefetch.hpp"
#include "service/requests/service_request.hpp"
#include "service/results/completion_poll.hpp"
#include "service/results/result_poll.hpp"
#include "service/sampling/sample_call.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tinkxx::service {

struct SampleCall::Dispatched final : public detail::InBlocks,
                                      private ServiceRequest::Listener,
                                      private ResultPoll::Listener {
    class Completion final : public CompletionWaiter {
    public:
        explicit Completion(SampleCall& call) noexcept : call_{call} {}

    private:
        void on_completion(Completed completed) override { call_.completed(completed); }
        SampleCall& call_;
    };

    explicit Dispatched(SampleCall& owner) noexcept : call{owner} {}

    ServiceRequest& new_submit(ServiceContext& context) {
        ServiceRequest::Listener& listener = *this;
        return request.emplace<ServiceRequest>(context, listener);
    }
    ResultPoll& new_poll(ResultSurroundings const& around) {
        ResultPoll::Listener& listener = *this;
        return request.emplace<ResultPoll>(around, listener);
    }
    [[nodiscard]] ServiceRequest* submit() noexcept {
        return std::get_if<ServiceRequest>(&request);
    }
    [[nodiscard]] ResultPoll* poll() noexcept { return std::get_if<ResultPoll>(&request); }
    void drop_request() noexcept { request.emplace<std::monostate>(); }
    [[nodiscard]] CompletionWaiter& new_completion() { return request.emplace<Completion>(call); }

    void on_response(HttpResponse response) override { call.submitted(response); }
    void on_error(Error error) override {
        if (poll() != nullptr) return call.attempt_failed(call.named(error));
        call.submit_failed(error);
    }
    void on_result(RetrievedResult result) override { call.retrieved(std::move(result)); }
    void on_queue_state(QueueState state, std::string const& reason) override {
        call.queue_reported(state, reason);
    }
    void on_standing() override { call.on_standing(); }
    void on_coming() const noexcept override { base::prefetch(&call, sizeof call); }
    bool may_repeat(Error const& error, RepeatCost cost) override {
        return call.may_repeat(error, cost);
    }
    std::optional<Error> before_repeat() override { return call.before_repeat(); }
    bool may_poll_again(Error const& /*error*/, RepeatCost cost) override {
        return call.may_poll_again(cost);
    }

    SampleCall& call;
    DispatchPermits permits{};
    std::string request_id{};  // a poll points to it
    /// The submit, then the wait for completion if there is one, then the poll for the result.
    std::variant<std::monostate, ServiceRequest, Completion, ResultPoll> request{};
    TimePoint submit_started{};
    /// Since when no submit was accepted; `{}` if the last one was, or there was none.
    TimePoint stalled_since{};
    std::unique_ptr<std::vector<std::string> const> sequence_ids{};  ///< null if not told
    std::unique_ptr<QueueStanding const> queue{};                    ///< null if not told
};

}  // namespace tinkxx::service
