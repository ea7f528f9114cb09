#pragma once

#include "net/stream.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <memory>

namespace tinkxx::net {

/// A stream over a connected socket, which it makes non-blocking.
[[nodiscard]] std::unique_ptr<Stream> make_socket_stream(boost::asio::ip::tcp::socket socket,
                                                         std::string peer);

/// What the system calls `code`, as the middle of a sentence: "connection refused".
[[nodiscard]] std::string system_text(int code);

}  // namespace tinkxx::net
