#include <tinkxx/observer.hpp>

namespace tinkxx {

std::string_view to_string(RecoveryEvent::Kind kind) noexcept {
    switch (kind) {
        case RecoveryEvent::Kind::poll_error:
            return "poll error";
        case RecoveryEvent::Kind::detected:
            return "detected";
        case RecoveryEvent::Kind::started:
            return "started";
        case RecoveryEvent::Kind::client_created:
            return "client created";
        case RecoveryEvent::Kind::completed:
            return "completed";
        case RecoveryEvent::Kind::failed:
            return "failed";
        case RecoveryEvent::Kind::exhausted:
            return "exhausted";
    }
    return "unknown";
}

}  // namespace tinkxx
