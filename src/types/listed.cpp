// Names of what the service lists.
#include <tinkxx/types/billing.hpp>
#include <tinkxx/types/session.hpp>

namespace tinkxx {

std::string_view to_string(SessionState state) noexcept {
    switch (state) {
        case SessionState::cancelled:
            return "cancelled";
        case SessionState::failed:
            return "failed";
        case SessionState::client_finished:
            return "client_finished";
        case SessionState::active:
            break;
    }
    return "active";
}

std::string_view to_string(AuditEvents events) noexcept {
    switch (events) {
        case AuditEvents::checkpoints:
            return "checkpoints";
        case AuditEvents::projects:
            return "projects";
        case AuditEvents::teams:
            return "teams";
        case AuditEvents::organizations:
            return "organizations";
        case AuditEvents::all:
            break;
    }
    return "all";
}

}  // namespace tinkxx
