#include "support/servers/http2_script.hpp"

#include <stdexcept>

namespace tinkxx::test {
namespace {

constexpr std::string_view preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

void put(std::string& out, std::uint64_t number, int bytes) {
    for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) {
        out += static_cast<char>(number >> static_cast<unsigned>(shift));
    }
}

std::uint32_t take(std::string_view bytes, std::size_t at, std::size_t count) {
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < count; ++i) {
        number = (number << 8U) | static_cast<unsigned char>(bytes.at(at + i));
    }
    return number;
}

std::string_view without_padding(Frame const& frame) {
    std::string_view payload = frame.payload;
    if ((frame.flags & NGHTTP2_FLAG_PADDED) != 0) {
        auto const padding = static_cast<unsigned char>(payload.at(0));
        payload = payload.substr(1, payload.size() - 1 - padding);
    }
    if (frame.type == NGHTTP2_HEADERS && (frame.flags & NGHTTP2_FLAG_PRIORITY) != 0) {
        payload.remove_prefix(5);
    }
    return payload;
}

}  // namespace

std::string Frame::bytes() const {
    std::string out;
    put(out, payload.size(), 3);
    put(out, type, 1);
    put(out, flags, 1);
    put(out, stream, 4);
    return out + payload;
}

namespace h2 {

std::string settings(std::vector<std::pair<std::uint16_t, std::uint32_t>> values) {
    Frame frame{.type = NGHTTP2_SETTINGS};
    for (auto const& [id, value] : values) {
        put(frame.payload, id, 2);
        put(frame.payload, value, 4);
    }
    return frame.bytes();
}

std::string settings_ack() { return Frame{.type = NGHTTP2_SETTINGS, .flags = ack}.bytes(); }

std::string data(std::uint32_t stream, std::string_view payload, bool end) {
    return Frame{.type = NGHTTP2_DATA,
                 .flags = end ? end_stream : std::uint8_t{0},
                 .stream = stream,
                 .payload = std::string{payload}}
        .bytes();
}

std::string goaway(std::uint32_t last_stream, std::uint32_t code, std::string_view debug) {
    Frame frame{.type = NGHTTP2_GOAWAY};
    put(frame.payload, last_stream, 4);
    put(frame.payload, code, 4);
    frame.payload += debug;
    return frame.bytes();
}

std::string rst_stream(std::uint32_t stream, std::uint32_t code) {
    Frame frame{.type = NGHTTP2_RST_STREAM, .stream = stream};
    put(frame.payload, code, 4);
    return frame.bytes();
}

std::string ping(std::string_view eight_bytes, bool is_ack) {
    return Frame{.type = NGHTTP2_PING,
                 .flags = is_ack ? ack : std::uint8_t{0},
                 .payload = std::string{eight_bytes}}
        .bytes();
}

std::string window_update(std::uint32_t stream, std::uint32_t increment) {
    Frame frame{.type = NGHTTP2_WINDOW_UPDATE, .stream = stream};
    put(frame.payload, increment, 4);
    return frame.bytes();
}

}  // namespace h2

Http2Peer::Http2Peer(Wire& wire)
    : wire_{wire},
      deflater_{nullptr, &nghttp2_hd_deflate_del},
      inflater_{nullptr, &nghttp2_hd_inflate_del} {
    nghttp2_hd_deflater* deflater = nullptr;
    nghttp2_hd_inflater* inflater = nullptr;
    if (nghttp2_hd_deflate_new(&deflater, 4096) != 0) throw std::runtime_error{"deflater"};
    deflater_.reset(deflater);
    if (nghttp2_hd_inflate_new(&inflater) != 0) throw std::runtime_error{"inflater"};
    inflater_.reset(inflater);
}

void Http2Peer::receive_preface() {
    auto const got = wire_.receive(preface.size());
    if (got != preface) throw std::runtime_error{"not an HTTP/2 preface: " + got};
}

void Http2Peer::handshake(std::vector<std::pair<std::uint16_t, std::uint32_t>> settings) {
    receive_preface();
    send(h2::settings(std::move(settings)));
}

Frame Http2Peer::receive_frame() {
    auto const header = wire_.receive(9);
    Frame frame;
    auto const size = take(header, 0, 3);
    frame.type = static_cast<std::uint8_t>(take(header, 3, 1));
    frame.flags = static_cast<std::uint8_t>(take(header, 4, 1));
    frame.stream = take(header, 5, 4) & 0x7fffffffU;
    frame.payload = wire_.receive(size);
    return frame;
}

ReceivedRequest Http2Peer::receive_request(std::uint32_t& stream) {
    for (;;) {
        for (auto& [id, open] : streams_) {
            if (!open.ended) continue;
            stream = id;
            auto request = std::move(open.request);
            streams_.erase(id);
            return request;
        }
        handle(receive_frame());
    }
}

ReceivedRequest Http2Peer::receive_request_head(std::uint32_t& stream) {
    for (;;) {
        for (auto& [id, open] : streams_) {
            if (open.head_taken) continue;
            stream = id;
            open.head_taken = true;
            return open.request;
        }
        handle(receive_frame());
    }
}

Frame Http2Peer::receive_frame_of(std::uint8_t type) {
    for (;;) {
        auto frame = receive_frame();
        handle(frame);
        if (frame.type == type) return frame;
    }
}

void Http2Peer::handle(Frame const& frame) {
    switch (frame.type) {
        case NGHTTP2_SETTINGS:
            if ((frame.flags & h2::ack) == 0 && answer_settings) send(h2::settings_ack());
            break;
        case NGHTTP2_PING:
            if ((frame.flags & h2::ack) == 0 && answer_pings) send(h2::ping(frame.payload, true));
            break;
        case NGHTTP2_HEADERS: {
            auto& open = streams_[frame.stream];
            open.request.connection = wire_.index();
            std::string block{without_padding(frame)};
            for (auto flags = frame.flags; (flags & h2::end_headers) == 0;) {
                auto const more = receive_frame();
                block += more.payload;
                flags = more.flags;
            }
            read_headers(open, block);
            open.ended = (frame.flags & h2::end_stream) != 0;
            break;
        }
        case NGHTTP2_DATA: {
            auto const found = streams_.find(frame.stream);
            if (found != streams_.end()) {
                found->second.request.body += without_padding(frame);
                found->second.ended = (frame.flags & h2::end_stream) != 0;
            }
            if (give_windows && !frame.payload.empty()) {
                auto const size = static_cast<std::uint32_t>(frame.payload.size());
                send(h2::window_update(0, size) + h2::window_update(frame.stream, size));
            }
            break;
        }
        case NGHTTP2_RST_STREAM:
            resets_[frame.stream] = take(frame.payload, 0, 4);
            streams_.erase(frame.stream);
            break;
        default:
            break;
    }
}

void Http2Peer::read_headers(Open& open, std::string_view block) {
    auto const* at = reinterpret_cast<unsigned char const*>(block.data());
    auto left = block.size();
    for (;;) {
        nghttp2_nv line{};
        int flags = 0;
        auto const used = nghttp2_hd_inflate_hd2(inflater_.get(), &line, &flags, at, left, 1);
        if (used < 0)
            throw std::runtime_error{"header block: " +
                                     std::string{nghttp2_strerror(static_cast<int>(used))}};
        at += used;
        left -= static_cast<std::size_t>(used);
        if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
            std::string name{reinterpret_cast<char const*>(line.name), line.namelen};
            std::string value{reinterpret_cast<char const*>(line.value), line.valuelen};
            if (name == ":method") {
                open.request.method = value;
            } else if (name == ":path") {
                open.request.target = value;
            } else {
                open.request.headers.add(std::move(name), std::move(value));
            }
        }
        if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) {
            nghttp2_hd_inflate_end_headers(inflater_.get());
            return;
        }
        if ((flags & NGHTTP2_HD_INFLATE_EMIT) == 0 && left == 0) return;
    }
}

std::string Http2Peer::header_block(Headers const& headers) {
    std::vector<nghttp2_nv> lines;
    for (auto const& [name, value] : headers) {
        lines.push_back({.name = reinterpret_cast<unsigned char*>(const_cast<char*>(name.data())),
                         .value = reinterpret_cast<unsigned char*>(const_cast<char*>(value.data())),
                         .namelen = name.size(),
                         .valuelen = value.size(),
                         .flags = NGHTTP2_NV_FLAG_NONE});
    }
    std::string block(nghttp2_hd_deflate_bound(deflater_.get(), lines.data(), lines.size()), '\0');
    auto const size =
        nghttp2_hd_deflate_hd(deflater_.get(), reinterpret_cast<unsigned char*>(block.data()),
                              block.size(), lines.data(), lines.size());
    if (size < 0) throw std::runtime_error{"header compression"};
    block.resize(static_cast<std::size_t>(size));
    return block;
}

std::string Http2Peer::head(std::uint32_t stream, ScriptedAnswer const& answer, bool end) {
    Headers lines;
    lines.add(":status", std::to_string(answer.status));
    for (auto const& [name, value] : answer.headers) lines.add(name, value);
    return Frame{.type = NGHTTP2_HEADERS,
                 .flags = static_cast<std::uint8_t>(h2::end_headers | (end ? h2::end_stream : 0)),
                 .stream = stream,
                 .payload = header_block(lines)}
        .bytes();
}

std::string Http2Peer::answer(std::uint32_t stream, ScriptedAnswer const& answer) {
    auto out = head(stream, answer, answer.body.empty());
    for (std::size_t at = 0; at < answer.body.size(); at += 16384) {
        out += h2::data(stream, std::string_view{answer.body}.substr(at, 16384),
                        at + 16384 >= answer.body.size());
    }
    return out;
}

}  // namespace tinkxx::test
