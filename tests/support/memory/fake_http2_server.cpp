#include "support/memory/fake_http2_server.hpp"

#include <algorithm>

namespace tinkxx::test {

struct FakeHttp2Server::Callbacks {
    static FakeHttp2Server& self(void* user) { return *static_cast<FakeHttp2Server*>(user); }

    static int header(nghttp2_session*, nghttp2_frame const* frame, std::uint8_t const* name,
                      std::size_t name_length, std::uint8_t const* value, std::size_t value_length,
                      std::uint8_t, void* user) {
        self(user).streams_[frame->hd.stream_id].headers.emplace(
            std::string{reinterpret_cast<char const*>(name), name_length},
            std::string{reinterpret_cast<char const*>(value), value_length});
        return 0;
    }
    static int data(nghttp2_session*, std::uint8_t, std::int32_t stream, std::uint8_t const* bytes,
                    std::size_t length, void* user) {
        self(user).streams_[stream].body.append(reinterpret_cast<char const*>(bytes), length);
        return 0;
    }
    static int frame(nghttp2_session*, nghttp2_frame const* frame, void* user) {
        auto& me = self(user);
        if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
            (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
            me.streams_[frame->hd.stream_id].ended = true;
        }
        if (frame->hd.type == NGHTTP2_RST_STREAM) {
            me.streams_[frame->hd.stream_id].reset = frame->rst_stream.error_code;
        }
        if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) {
            ++me.pings_;
        }
        return 0;
    }
    static int stream_close(nghttp2_session*, std::int32_t stream, std::uint32_t, void* user) {
        self(user).streams_[stream].closed = true;
        return 0;
    }
    static ssize_t read(nghttp2_session*, std::int32_t stream, std::uint8_t* into,
                        std::size_t length, std::uint32_t* flags, nghttp2_data_source*,
                        void* user) {
        auto& rest = self(user).streams_[stream].answer;
        auto const count = std::min(length, rest.size());
        std::copy_n(rest.data(), count, reinterpret_cast<char*>(into));
        rest.erase(0, count);
        if (rest.empty()) *flags |= NGHTTP2_DATA_FLAG_EOF;
        return static_cast<ssize_t>(count);
    }
};

FakeHttp2Server::FakeHttp2Server(FakePeer& peer, std::uint32_t max_streams) : peer_{peer} {
    nghttp2_session_callbacks* all = nullptr;
    nghttp2_session_callbacks_new(&all);
    nghttp2_session_callbacks_set_on_header_callback(all, &Callbacks::header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(all, &Callbacks::data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(all, &Callbacks::frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(all, &Callbacks::stream_close);
    nghttp2_session* session = nullptr;
    nghttp2_session_server_new(&session, all, this);
    nghttp2_session_callbacks_del(all);
    session_.reset(session);
    allow_streams(max_streams);
}

void FakeHttp2Server::allow_streams(std::uint32_t count) {
    nghttp2_settings_entry const entry{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, count};
    nghttp2_submit_settings(session_.get(), NGHTTP2_FLAG_NONE, &entry, 1);
    pump();
}

void FakeHttp2Server::pump() {
    auto const bytes = peer_.take();
    nghttp2_session_mem_recv(session_.get(), reinterpret_cast<std::uint8_t const*>(bytes.data()),
                             bytes.size());
    for (;;) {
        std::uint8_t const* out = nullptr;
        auto const length = nghttp2_session_mem_send(session_.get(), &out);
        if (length <= 0) break;
        peer_.send({reinterpret_cast<char const*>(out), static_cast<std::size_t>(length)});
    }
}

void FakeHttp2Server::answer(std::int32_t stream, int status, std::string body) {
    auto text = std::to_string(status);
    std::string name{":status"};
    nghttp2_nv line{reinterpret_cast<std::uint8_t*>(name.data()),
                    reinterpret_cast<std::uint8_t*>(text.data()), name.size(), text.size(),
                    NGHTTP2_NV_FLAG_NONE};
    streams_[stream].answer = std::move(body);
    nghttp2_data_provider provider{};
    provider.read_callback = &Callbacks::read;
    nghttp2_submit_response(session_.get(), stream, &line, 1, &provider);
    pump();
}

void FakeHttp2Server::refuse(std::int32_t stream, std::uint32_t code) {
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, stream, code);
    pump();
}

void FakeHttp2Server::go_away(std::int32_t last_stream, std::uint32_t code) {
    nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE, last_stream, code, nullptr, 0);
    pump();
}

}  // namespace tinkxx::test
