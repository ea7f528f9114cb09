#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tinkxx::simulation {

// Messages as simulated services read and write them: by other code than the library's.

/// The value of a number or text among the members of a small JSON object, as it stands there. Good
/// enough for what the library writes.
[[nodiscard]] std::string_view json_member(std::string_view json, std::string_view name);

/// One number of a protobuf message.
void append_varint(std::string& out, std::uint64_t value);
/// A field of text, bytes or a message.
void append_bytes(std::string& out, unsigned field, std::string_view bytes);

}  // namespace tinkxx::simulation
