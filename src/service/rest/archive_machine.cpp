#include "service/rest/archive_machine.hpp"

#include "service/text/http_date.hpp"
#include "wire/rest/training_runs.hpp"

namespace tinkxx::service {
namespace {

bool is_being_built(Error const& error) noexcept { return error.http_status() == 503; }

Timestamp timestamp_of(WallTime time) {
    return {.time = std::chrono::floor<std::chrono::microseconds>(time)};
}

}  // namespace

ArchiveMachine::Action ArchiveMachine::on_response(HttpResponse const& response, WallTime now) {
    if (response.status / 100 != 3) {
        auto read = wire::decode_archive_url(response.body);
        if (!read) return AskInVain{read.error()};
        return Answered<ArchiveUrl>{*std::move(read)};
    }
    auto const* const location = response.headers.find("Location");
    if (location == nullptr || location->empty()) {
        return AskInVain{Error{
            {.kind = ErrorKind::status,
             .message = "the server answered " + std::to_string(response.status) +
                        " without a Location, so there is no archive to fetch; check that the "
                        "base URL names a Tinker server and not a proxy",
             .http_status = response.status}}};
    }
    auto const* const line = response.headers.find("Expires");
    auto const date = line == nullptr ? std::nullopt : parse_http_date(*line, now);
    return Answered<ArchiveUrl>{
        {.url = *location, .expires = timestamp_of(date.value_or(now + lifetime))}};
}

ArchiveMachine::Action ArchiveMachine::on_error(Error const& error) {
    ++tried_;
    auto const status = error.http_status().value_or(0);
    if (is_being_built(error)) {
        if (tried_ < tries) {
            return AskAgain{.delay = between_tries, .why = "the archive is being built"};
        }
        auto details = error.details();
        details.message += "; the archive was not there after " + std::to_string(tries) + " tries";
        details.attempts = tries;
        details.stopped = RetryEnd::attempts_spent;
        return AskInVain{Error{std::move(details)}};
    }
    if (status != 403 && status != 404 && status != 410) return AskInVain{error};
    auto details = error.details();
    details.message +=
        "; newer servers make no archives: save the weights by "
        "TrainingClient::save_weights_external and fetch their files";
    return AskInVain{Error{std::move(details)}};
}

bool ArchiveMachine::may_repeat(Error const& error) noexcept { return !is_being_built(error); }

}  // namespace tinkxx::service
