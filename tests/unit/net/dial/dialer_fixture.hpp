#pragma once

#include "dial_fixture.hpp"
#include "support/servers/script_server.hpp"
#include "support/sockets/sockets.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace tinkxx::net {

/// A socket bound to that address, so that nobody else listens there; it refuses connections
/// unless `backlog` is given.
inline test::Fd bind_to(char const* address, std::uint16_t port, int backlog = -1) {
    test::Fd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    ::inet_pton(AF_INET, address, &where.sin_addr);
    if (::bind(socket.get(), reinterpret_cast<sockaddr const*>(&where), sizeof where) != 0 ||
        (backlog >= 0 && ::listen(socket.get(), backlog) != 0)) {
        throw std::runtime_error{"cannot bind"};
    }
    return socket;
}

/// Sends what it gets back, each line.
inline void echo(test::Wire& wire) {
    for (;;) wire.send(wire.receive_until("\n"));
}

class DialerTest : public DialTest {
protected:
    static Origin plain(std::string host, std::uint16_t port) {
        return {.tls = false, .host = std::move(host), .port = port};
    }
    void expect_echo(Stream& stream) {
        EXPECT_EQ(write(stream, "ping\n"), IoResult::Status::ok);
        EXPECT_EQ(read(stream, 5).text, "ping\n");
    }
    void expect_echo(Dialled const& dialled) {
        ASSERT_NE(dialled.stream, nullptr) << dialled.message;
        expect_echo(*dialled.stream);
    }
};

}  // namespace tinkxx::net
