#pragma once

#include "frame/context.hpp"

#include <tinkxx/credentials.hpp>

#include <string>
#include <string_view>

namespace tinkxx::cli {

/// What the service says of a key.
struct KeyInfo {
    std::string id{};
    StoredKey key{};
};

/// Asks whose key it is. Throws `Error` if it is refused, or the answer cannot be read.
[[nodiscard]] KeyInfo key_info(std::string const& key, Context const& context);
/// Makes the service forget a key. Throws as above.
void revoke(std::string const& key, Context const& context);

/// What the JSON of an answer says. Throws `Error`.
[[nodiscard]] KeyInfo read_key_info(std::string_view json);

}  // namespace tinkxx::cli
