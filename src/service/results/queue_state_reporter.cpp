#include "service/results/queue_state_reporter.hpp"

#include "service/http/http_context.hpp"
#include "service/http/http_error.hpp"

#include <utility>

namespace tinkxx::service {

void QueueStateReporter::tell(HttpContext const& http, CallOptions const& call,
                              QueueStateEvent told) {
    std::optional<std::string> line;
    if (call.queue_warnings) {
        line = report(told.owner_id, told.state, told.reason, http.scheduler().now());
    }
    told.reason = reason_for(told.state, told.reason);
    if (line) http.log(LogLevel::warning, *line);
    for (auto const& handler : call.on_queue_state) {
        http.call_back("a queue-state handler", LogLevel::warning,
                       [handler, told] { handler(told); });
    }
    if (http.observed()) http.tell(&Observer::on_queue_state, std::move(told));
}

std::optional<std::string> QueueStateReporter::report(std::string_view id, QueueState state,
                                                      std::string_view reason, TimePoint now) {
    if (state == QueueState::active) return std::nullopt;
    if (warned_ && now - *warned_ < pause) return std::nullopt;
    warned_ = now;
    std::string line{subject_.prefix};
    line += " is paused for ";
    line += id;
    line += ": ";
    line += reason_for(state, reason);
    return line;
}

std::string QueueStateReporter::reason_for(QueueState state, std::string_view reason) const {
    auto said = one_line(reason);
    if (!said.empty()) return said;
    switch (state) {
        case QueueState::paused_rate_limit:
            return std::string{subject_.rate_limit};
        case QueueState::paused_capacity:
            return "Tinker backend is running short on capacity, please wait";
        case QueueState::active:
        case QueueState::unknown:
            break;
    }
    return "unknown";
}

}  // namespace tinkxx::service
