// A client that sends anything, in pieces of any size, and reads as it likes. Whatever it does,
// what reaches the handler is a request within the limits, each is answered once, what goes out is
// made of whole answers, and the connection holds no more than it may.
#include "support/memory/wired_connection.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace tinkxx;
    if (size < 3) return 0;
    local::ListenerLimits const limits{.max_header_bytes = 512,
                                       .max_header_lines = 16,
                                       .max_request_bytes = 256,
                                       .max_kept_bytes = 256,
                                       .max_unsent_bytes = 1024};
    // What is kept, a head, a body, answers and the one that is given last.
    constexpr std::size_t most_held =
        (512 + 256 + 64) + (512 + 16 * 2 * sizeof(Header)) + (256 + 1) + (1024 + 1024);
    test::WiredConnection wire{limits};
    auto const piece = static_cast<std::size_t>(data[0] % 64) + 1;
    auto const how = data[1];
    auto const lag = data[2] % 4;
    bool const streams = (how & 1U) != 0;
    bool const later = (how & 2U) != 0;
    bool const drops = (how & 4U) != 0;
    bool const reads_little = (how & 8U) != 0;
    std::size_t answered = 0;
    auto const answer = [&](local::Answer& one) {
        ++answered;
        one.head(200, {}, streams ? std::nullopt : std::optional<std::size_t>{2});
        one.data("ok");
        one.done();
    };
    wire.handler.act = [&](local::ServerRequest& request, std::shared_ptr<local::Answer> one) {
        require(request.body.size() <= limits.max_request_bytes);
        require(request.target.starts_with('/') || request.target == "*");
        require(!request.method.empty());
        if (!later) return answer(*one);
        one->on_gone([] {});
        wire.handler.asked.push_back({std::move(request), std::move(one)});
    };
    std::string_view const input{reinterpret_cast<char const*>(data) + 3, size - 3};
    int turn = 0;
    for (std::size_t at = 0; at < input.size(); at += piece) {
        if (reads_little) wire.write_room = (how >> 4U) * std::size_t{8};
        wire.offer(input.substr(at, piece));
        if (later && !wire.handler.asked.empty() && turn++ % (lag + 1) == lag) {
            require(wire.handler.asked.size() == 1);
            auto const one = std::move(wire.handler.asked.back());
            wire.handler.asked.clear();
            if (!drops) answer(*one.answer);
        }
        wire.settle();
        require(wire.most_held <= most_held);
        require(wire.connection->held() == wire.share.receiving + wire.share.sending);
    }
    wire.write_room = SIZE_MAX;
    wire.settle();
    wire.connection->peer_ended();
    wire.settle();
    // What it asked before is still asked.
    while (!wire.handler.asked.empty()) {
        wire.handler.asked.clear();
        wire.settle();
    }
    require(wire.next() == local::ServerConnection::Next::close);
    require(wire.share.receiving == 0 && wire.share.sending == 0 && wire.share.senders.empty());
    std::size_t answers = 0;
    for (auto at = wire.sent.find("HTTP/1.1 200 OK\r\n"); at != std::string::npos;
         at = wire.sent.find("HTTP/1.1 200 OK\r\n", at + 1)) {
        ++answers;
    }
    require(answers == answered);
    return 0;
}
