#pragma once

#include "socket/modes.hpp"

#include <cstdint>

namespace tinkxx::test {

/// Answers every request with its own body until the peer leaves.
inline void serve_echo(Http2Peer& peer) {
    for (;;) {
        std::uint32_t stream = 0;
        auto const request = peer.receive_request(stream);
        peer.send(peer.answer(stream, {.body = request.body}));
    }
}

inline void echo_script(Wire& wire) {
    Http2Peer peer{wire};
    peer.handshake();
    serve_echo(peer);
}

/// Tests of HTTP/2 on the level of frames, in the clear.
class Http2Test : public testing::Test {
protected:
    HttpDriver driver{net_options(http2_cleartext)};
};

}  // namespace tinkxx::test
