#include "service/calls/close_call.hpp"

#include "service/results/standing.hpp"

#include <utility>

namespace tinkxx::service {

CloseCall::CloseCall(std::shared_ptr<ClientCore> core, std::optional<Finish> finish,
                     Promise<void> promise)
    : core_{std::move(core)}, finish_{std::move(finish)}, promise_{std::move(promise)} {}

void CloseCall::begin() {
    auto self = std::static_pointer_cast<CloseCall>(shared_from_this());
    core_->session().close(std::move(finish_), [self](Result<void> outcome) {
        self->leave();
        self->promise_.set_result(std::move(outcome));
    });
    if (!answered()) look();
    hand_over();
}

void CloseCall::fail(Error error) {
    leave();
    answer(std::move(error));
}

ErrorDetails CloseCall::late_error(std::string const& limit, std::string const& standing) const {
    return {.kind = ErrorKind::timeout,
            .message = "close: " + limit + ", and goes on by itself; it was " + standing,
            .stopped = RetryEnd::cancelled};
}

void CloseCall::fill(OperationStatus& status, TimePoint now) const {
    status.why = core_->session().standing();
    if (auto const until = core_->session().until()) status.ends_in = *until - now;
    if (auto const call = core_->session().call_standing()) describe_stall(status, *call, now);
}

}  // namespace tinkxx::service
