#pragma once

#include <tinkxx/http.hpp>
#include <tinkxx/scheduler.hpp>

#include "service/rest/asking.hpp"

#include <chrono>
#include <string>
#include <utility>

namespace tinkxx::service {

/// Decides what follows each answer to a request for the trace of a session (R-REST-00). Touches
/// no socket and reads no clock.
class TraceMachine {
public:
    using Value = std::string;
    using Action = AskAction<std::string>;

    static constexpr std::chrono::seconds between_asks{5};

    explicit TraceMachine(std::string session_id) : session_id_{std::move(session_id)} {}

    [[nodiscard]] Action on_response(HttpResponse const& response, WallTime now) const;
    [[nodiscard]] static Action on_error(Error const& error) { return AskInVain{error}; }
    [[nodiscard]] static bool may_repeat(Error const& /*error*/) noexcept { return true; }
    [[nodiscard]] static char const* warning() noexcept {
        return "the server collects the trace, which may take a while";
    }

private:
    std::string const session_id_;
};

}  // namespace tinkxx::service
