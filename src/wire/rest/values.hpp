#pragma once

#include <tinkxx/types/checkpoint.hpp>
#include <tinkxx/types/timestamp.hpp>

#include "wire/json/json.hpp"

#include <map>
#include <string>
#include <string_view>

namespace tinkxx::wire {

// What several answers to REST calls hold.

/// ISO 8601, or a number of seconds or milliseconds since 1970, as the official SDK takes them.
void read(JsonIn const& in, Timestamp& out);
void read(JsonIn const& in, Cursor& out);

/// The members of an object, each as JSON text; none if it is missing or null.
[[nodiscard]] std::map<std::string, std::string> json_texts(JsonIn const& in,
                                                            std::string_view name);

}  // namespace tinkxx::wire
