#include "service/results/standing.hpp"

#include <string>
#include <utility>

namespace tinkxx::service {

Stage stage_of(ResultPoll const& poll) noexcept {
    switch (poll.doing()) {
        case PollStanding::Doing::nothing:
        case PollStanding::Doing::polling:
            break;
        case PollStanding::Doing::credential:
            return Stage::waiting_for_credential;
        case PollStanding::Doing::waiting:
            return poll.wait_reason() == PollWait::billing ? Stage::billing_pause
                                                           : Stage::waiting_to_poll;
        case PollStanding::Doing::download:
            return Stage::waiting_for_download;
        case PollStanding::Doing::classifying:
            return Stage::decoding;
    }
    return Stage::polling;
}

void describe_stall(OperationStatus& status, Standing const& call, TimePoint now) {
    if (call.stalled_since) status.stalled = now - *call.stalled_since;
    if (call.gives_up) status.gives_up_in = *call.gives_up - now;
}

void describe_alone(OperationStatus& status, ServiceRequest const& call, TimePoint now) {
    auto const standing = call.standing();
    status.attempt = standing.attempt;
    if (standing.until) status.ends_in = *standing.until - now;
    status.why =
        standing.doing == Standing::Doing::sending ? describe(standing, now) : standing.why;
    describe_stall(status, standing, now);
}

void describe(OperationStatus& status, ServiceRequest const& call, TimePoint now) {
    auto standing = call.standing();
    describe_stall(status, standing, now);
    if (standing.until) status.ends_in = *standing.until - now;
    status.why = std::move(standing.why);
    if (standing.doing != Standing::Doing::sending) return;
    status.why = status.why.empty() ? "the service has not answered yet"
                                    : "the service has not answered yet; last: " + status.why;
}

void describe(OperationStatus& status, ResultPoll const& poll, HttpContext& http, TimePoint now) {
    auto const standing = poll.standing();
    status.polls = standing.polls;
    if (standing.until) status.ends_in = *standing.until - now;
    if (standing.failing_since) status.stalled = now - *standing.failing_since;
    switch (standing.doing) {
        case PollStanding::Doing::nothing:
            break;
        case PollStanding::Doing::polling:
            status.why = "the service has no result yet";
            if (standing.failing_since) {
                status.why = "the service has not answered yet; last: ";
                status.why += standing.last_failure;
            }
            break;
        case PollStanding::Doing::credential: {
            auto credential = http.credentials().standing();
            status.why = std::move(credential.why);
            if (credential.until) status.ends_in = *credential.until - now;
            status.stalled = now - standing.failing_since.value_or(standing.doing_since);
            break;
        }
        case PollStanding::Doing::waiting:
            status.why = standing.last_failure.empty() ? std::string{to_string(standing.why)}
                                                       : std::string{standing.last_failure};
            break;
        case PollStanding::Doing::download:
            status.why = "other results are being fetched (ClientOptions::download_bytes)";
            break;
        case PollStanding::Doing::classifying:
            status.why = "its long result is being read";
            break;
    }
}

}  // namespace tinkxx::service
