// An HTTP/2 server that sends anything after (or in place of) its SETTINGS. Each call ends
// exactly once, and what the server cannot have seen may be sent again, so peers beyond the
// first one refuse.
#include "support/memory/fake_network.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    if (size < 2) return 0;
    tinkxx::NetOptions options;
    options.http_version = tinkxx::HttpVersion::http2;
    tinkxx::test::FakeNetwork net{std::move(options)};
    auto const piece = static_cast<std::size_t>(data[0]) + 1;
    bool const greets = (data[1] & 1U) != 0;
    bool const blocked = (data[1] & 2U) != 0;
    net.greet = [&](tinkxx::test::FakePeer& peer) {
        peer.piece = piece;
        if (blocked) peer.write_room = 500;
        if (greets) peer.send(std::string{"\0\0\0\4\0\0\0\0\0", 9});
    };
    auto request = tinkxx::test::request_to("http://host/", "POST", std::string(3000, 'x'));
    request.max_response_bytes = 1 << 20;
    auto& first = net.start(request);
    auto& second = net.start(request);
    auto& third = net.start(std::move(request));
    net.refuse = "no more";
    auto& peer = net.peer(0);
    peer.send({reinterpret_cast<char const*>(data + 2), size - 2});
    net.settle();
    net.cancel(third);
    if (!peer.client_closed()) {
        peer.reset();
        net.settle();
    }
    if (first.ends > 1 || second.ends > 1 || third.ends > 1) std::abort();
    return 0;
}
