#pragma once

#include "support/memory/fake_network.hpp"

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tinkxx::test {

/// A well-behaved HTTP/2 server at the far end of a `FakePeer`. `pump` moves bytes; the test
/// decides when and what it answers.
class FakeHttp2Server {
public:
    struct Stream {
        std::map<std::string, std::string> headers{};
        std::string body{};
        bool ended{false};
        std::uint32_t reset{0};
        bool closed{false};
        std::string answer{};  ///< what is left to send of the answer's body
    };

    explicit FakeHttp2Server(FakePeer& peer, std::uint32_t max_streams = 100);

    /// Takes in what the client wrote and sends what there is to send.
    void pump();
    void answer(std::int32_t stream, int status, std::string body = {});
    void refuse(std::int32_t stream, std::uint32_t code);
    void go_away(std::int32_t last_stream, std::uint32_t code = NGHTTP2_NO_ERROR);
    void allow_streams(std::uint32_t count);

    [[nodiscard]] std::map<std::int32_t, Stream>& streams() noexcept { return streams_; }
    [[nodiscard]] int pings() const noexcept { return pings_; }

private:
    struct Callbacks;
    struct Deleter {
        void operator()(nghttp2_session* session) const noexcept { nghttp2_session_del(session); }
    };

    FakePeer& peer_;
    std::unique_ptr<nghttp2_session, Deleter> session_;
    std::map<std::int32_t, Stream> streams_;
    int pings_{0};
};

}  // namespace tinkxx::test
