#include "frame/context.hpp"

#include <cstdlib>

namespace tinkxx::cli {

std::optional<std::string> process_environment(char const* name) {
    auto const* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
}

ClientOptions Context::client_options() const {
    auto options = client;
    if (!globals.api_key.empty()) options.api_key = globals.api_key;
    if (!globals.base_url.empty()) options.base_url = globals.base_url;
    options.deadline = std::chrono::milliseconds{static_cast<std::int64_t>(globals.timeout * 1e3)};
    return options;
}

}  // namespace tinkxx::cli
