#pragma once

#include <tinkxx/transport.hpp>

namespace tinkxx::base {

/// What a request fails with whose `Transport::start` threw the exception that is being handled.
[[nodiscard]] Failure start_failure();

}  // namespace tinkxx::base
