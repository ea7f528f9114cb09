#pragma once

#include "support/servers/http1_script.hpp"
#include "support/servers/script_server.hpp"

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::test {

/// One HTTP/2 frame, or what claims to be one.
struct Frame {
    std::uint8_t type{0};
    std::uint8_t flags{0};
    std::uint32_t stream{0};
    std::string payload{};

    /// As it goes over the wire, with the true length.
    [[nodiscard]] std::string bytes() const;
};

namespace h2 {

inline constexpr std::uint8_t end_stream = NGHTTP2_FLAG_END_STREAM;
inline constexpr std::uint8_t end_headers = NGHTTP2_FLAG_END_HEADERS;
inline constexpr std::uint8_t ack = NGHTTP2_FLAG_ACK;

/// Pairs of identifier and value.
[[nodiscard]] std::string settings(std::vector<std::pair<std::uint16_t, std::uint32_t>> values);
[[nodiscard]] std::string settings_ack();
[[nodiscard]] std::string data(std::uint32_t stream, std::string_view payload, bool end);
[[nodiscard]] std::string goaway(std::uint32_t last_stream, std::uint32_t code,
                                 std::string_view debug = {});
[[nodiscard]] std::string rst_stream(std::uint32_t stream, std::uint32_t code);
[[nodiscard]] std::string ping(std::string_view eight_bytes, bool is_ack);
[[nodiscard]] std::string window_update(std::uint32_t stream, std::uint32_t increment);

}  // namespace h2

/// The server's end of an HTTP/2 connection for scripts: frames in, frames out, with header
/// compression, and no opinion on what is allowed.
class Http2Peer {
public:
    explicit Http2Peer(Wire& wire);

    /// Reads the client's preface; throws if it is something else.
    void receive_preface();
    /// Reads the preface and sends SETTINGS.
    void handshake(std::vector<std::pair<std::uint16_t, std::uint32_t>> settings = {});

    /// The next frame as it is. Throws `PeerGone` at the end of the stream.
    [[nodiscard]] Frame receive_frame();
    /// The next complete request. Meanwhile acknowledges SETTINGS and PINGs (if `answer_pings`)
    /// and gives back flow-control windows (if `give_windows`); notes RST_STREAM and GOAWAY.
    [[nodiscard]] ReceivedRequest receive_request(std::uint32_t& stream);
    /// Only the head of the next request: its body is left unread.
    [[nodiscard]] ReceivedRequest receive_request_head(std::uint32_t& stream);
    /// Handles frames until one of that type comes, and returns it.
    [[nodiscard]] Frame receive_frame_of(std::uint8_t type);

    /// HEADERS for an answer, compressed with this connection's state: send it, or the client's
    /// state no longer fits.
    [[nodiscard]] std::string head(std::uint32_t stream, ScriptedAnswer const& answer, bool end);
    /// HEADERS and DATA of a complete answer.
    [[nodiscard]] std::string answer(std::uint32_t stream, ScriptedAnswer const& answer);
    /// The header block alone, to be cut into CONTINUATION frames.
    [[nodiscard]] std::string header_block(Headers const& headers);

    void send(std::string_view bytes) { wire_.send(bytes); }
    [[nodiscard]] Wire& wire() noexcept { return wire_; }
    /// Codes of the RST_STREAM frames that came, by stream.
    [[nodiscard]] std::map<std::uint32_t, std::uint32_t> const& resets() const noexcept {
        return resets_;
    }

    bool answer_pings{true};
    bool answer_settings{true};
    bool give_windows{true};

private:
    struct Open {
        ReceivedRequest request{};
        bool ended{false};
        bool head_taken{false};
    };
    /// Does what a frame asks for.
    void handle(Frame const& frame);
    void read_headers(Open& open, std::string_view block);

    Wire& wire_;
    std::unique_ptr<nghttp2_hd_deflater, decltype(&nghttp2_hd_deflate_del)> deflater_;
    std::unique_ptr<nghttp2_hd_inflater, decltype(&nghttp2_hd_inflate_del)> inflater_;
    std::map<std::uint32_t, Open> streams_;
    std::map<std::uint32_t, std::uint32_t> resets_;
};

}  // namespace tinkxx::test
