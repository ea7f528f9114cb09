#pragma once

#include <tinkxx/error.hpp>

#include "wire/session/telemetry.hpp"

#include <boost/json/object.hpp>

#include <string_view>

namespace tinkxx::service {

using wire::Severity;

/// Takes what the service shall know about this client's troubles (R-TEL). Loop thread only.
/// Whoever reports holds a pointer that is null while telemetry is off.
class Telemetry {
public:
    virtual ~Telemetry() = default;
    /// Queues a `GENERIC_EVENT`. `name` has few values; `data` holds no secret.
    virtual void event(std::string_view name, Severity severity, boost::json::object data) = 0;
    /// Queues an error that ends a public call (R-TEL-30, R-TEL-31).
    virtual void capture(Error const& error) = 0;
};

}  // namespace tinkxx::service
