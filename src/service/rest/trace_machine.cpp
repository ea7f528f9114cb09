#include "service/rest/trace_machine.hpp"

#include "wire/rest/sessions.hpp"

namespace tinkxx::service {

TraceMachine::Action TraceMachine::on_response(HttpResponse const& response,
                                               WallTime /*now*/) const {
    using State = wire::TraceExport::State;
    auto read = wire::decode_trace_export(response.body);
    if (!read) return AskInVain{read.error()};
    if (read->state == State::ready) return Answered<std::string>{std::move(read->url)};
    if (read->state == State::pending) {
        return AskAgain{.delay = between_asks, .why = "the trace is being collected"};
    }
    return AskInVain{
        Error{{.kind = ErrorKind::request_failed,
               .message = "the server could not export the trace of session " + session_id_ + ": " +
                          (read->error.empty() ? "it gave no reason" : read->error)}}};
}

}  // namespace tinkxx::service
