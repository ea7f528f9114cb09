#include "service/results/completion_machine.hpp"

#include "service/http/http_error.hpp"

namespace tinkxx::service {

std::vector<std::string> const& CompletionMachine::begin() {
    reported_.assign(unreported_.begin(), unreported_.end());
    return reported_;
}

bool CompletionMachine::on_success(std::int64_t cursor) noexcept {
    for (auto const& id : reported_) unreported_.erase(id);
    reported_.clear();
    bad_requests_ = 0;
    return std::exchange(cursor_, cursor) != cursor;
}

CompletionMachine::Action CompletionMachine::on_error(Error const& error) noexcept {
    if (error.kind() == ErrorKind::billing) return AskBilling{};
    if (error.kind() == ErrorKind::status) {
        auto const status = error.http_status().value_or(0);
        if (status == 400) {
            if (++bad_requests_ > most_bad_requests) return FallBack{};
            return Again{pause};
        }
        bad_requests_ = 0;
        if (is_passing(status)) return Again{pause};
        return FallBack{};
    }
    bool const no_answer =
        error.kind() == ErrorKind::connection || error.kind() == ErrorKind::timeout;
    if (no_answer && error.retryable()) return Again{pause};
    return FallBack{};
}

CompletionMachine::Action CompletionMachine::on_billing(bool waited_out) noexcept {
    if (waited_out) return Again{billing_pause};
    return FallBack{};
}

}  // namespace tinkxx::service
