#pragma once

#include "net/stream/stream.hpp"

#include <memory>
#include <string>

namespace tinkxx::base {
class EventLoop;
}

namespace tinkxx::net {

/// A stream over a connected, non-blocking socket, which it closes. The loop outlives it.
[[nodiscard]] std::unique_ptr<Stream> make_socket_stream(base::EventLoop& loop, int socket,
                                                         std::string peer);

/// What the system calls `code`, as the middle of a sentence: "connection refused".
[[nodiscard]] std::string system_text(int code);

}  // namespace tinkxx::net
