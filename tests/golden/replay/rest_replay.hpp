#pragma once

#include <tinkxx/service_client.hpp>

#include "golden/recordings/recording.hpp"
#include "golden/replay/stub_service.hpp"

#include <string>

namespace tinkxx::golden {

/// Makes the call of a REST client that the official one names so, and gives its result as
/// recordings have it. `version`: the release that the result is compared with.
[[nodiscard]] Result<value> call_rest(StubService& stub, ServiceClient const& service,
                                      std::string const& method, value const& args,
                                      std::string const& version);
/// Whether there is such a call.
[[nodiscard]] bool knows_rest(std::string const& method);

}  // namespace tinkxx::golden
