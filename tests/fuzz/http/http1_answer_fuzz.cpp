// An HTTP/1.1 server that sends anything, in pieces of any size. Whatever it is, each call ends
// exactly once and nothing is touched afterwards.
#include "support/memory/fake_network.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    if (size < 2) return 0;
    tinkxx::test::FakeNetwork net;
    auto const piece = static_cast<std::size_t>(data[0]) + 1;
    bool const closes = (data[1] & 1U) != 0;
    bool const pauses = (data[1] & 2U) != 0;
    bool const head_only = (data[1] & 4U) != 0;
    net.greet = [&](tinkxx::test::FakePeer& peer) { peer.piece = piece; };
    auto request = tinkxx::test::request_to("http://host/", head_only ? "HEAD" : "GET");
    request.max_response_bytes = 1 << 20;
    auto& call = net.start(std::move(request));
    if (pauses) {
        call.when_data = [&](tinkxx::test::Record& record) {
            net.transport().pause(record.call, true);
        };
    }
    auto& peer = net.peer(0);
    peer.send({reinterpret_cast<char const*>(data + 2), size - 2});
    if (closes) peer.close();
    net.settle();
    if (pauses) {
        call.when_data = {};
        net.on_loop([&] { net.transport().pause(call.call, false); });
    }
    if (!peer.client_closed()) {
        peer.reset();
        net.settle();
    }
    // Redirects may have led to further connections, which never answer.
    if (call.ends > 1) std::abort();
    if (call.ends == 0 && net.peers().size() == 1) std::abort();
    return 0;
}
