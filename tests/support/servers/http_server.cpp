#include "support/servers/http_server.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <openssl/err.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tinkxx::test {
namespace {

constexpr std::string_view preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::size_t high_water = std::size_t{256} * 1024;
constexpr std::uint64_t listener_key = 0;
constexpr std::uint64_t event_key = 1;

struct SessionDelete {
    void operator()(nghttp2_session* session) const noexcept { nghttp2_session_del(session); }
};

/// An answer on its way: its body is sent as flow control allows.
struct Outgoing {
    std::string body{};
    std::size_t at{0};
};

struct Stream {
    ReceivedRequest request{};
    Outgoing outgoing{};
};

struct Connection {
    std::uint64_t key{0};
    int index{0};
    Fd socket{};
    SslHandle tls{nullptr, &SSL_free};
    bool handshaking{false};
    enum class Mode { unknown, http1, http2 } mode{Mode::unknown};
    std::string in{};
    std::string out{};
    std::size_t out_at{0};
    bool wants_write{false};
    bool close_when_sent{false};
    bool lingering{false};  ///< said goodbye; reads and drops until the client closes
    bool answering{false};  ///< HTTP/1.1: an answer is held back
    std::map<std::int32_t, Stream> streams{};
    std::shared_ptr<void> context{};  ///< what the session's callbacks get
    std::unique_ptr<nghttp2_session, SessionDelete> session{};

    [[nodiscard]] bool idle() const noexcept {
        return !handshaking && !lingering && streams.empty() && !answering && in.empty() &&
               out_at == out.size();
    }
};

struct Pending {
    std::uint64_t connection{0};
    std::int32_t stream{0};
    Reaction reaction{};
};

}  // namespace

struct HttpServer::Impl {
    Impl(Handler given, HttpServerOptions options_given)
        : handler{std::move(given)},
          options{std::move(options_given)},
          epoll{::epoll_create1(EPOLL_CLOEXEC)},
          event{make_event()} {
        listen();
        port = port_of(listener);
        options.port = port;
        watch(event.get(), event_key, EPOLLIN, EPOLL_CTL_ADD);
        nghttp2_session_callbacks_new(&callbacks);
        set_callbacks();
        thread = std::thread{[this] { run(); }};
    }
    ~Impl() {
        command([this] { stopping = true; });
        thread.join();
        nghttp2_session_callbacks_del(callbacks);
    }

    // Any thread ---------------------------------------------------------------------------

    void command(std::function<void()> work) {
        std::promise<void> done;
        {
            std::lock_guard const lock{mutex};
            commands.emplace_back([&] {
                work();
                done.set_value();
            });
        }
        raise(event);
        done.get_future().wait();
    }

    // The server's thread ------------------------------------------------------------------

    void listen() {
        listener = listen_on_loopback(options.family, options.port, 4096);
        ::fcntl(listener.get(), F_SETFL, O_NONBLOCK);
        watch(listener.get(), listener_key, EPOLLIN, EPOLL_CTL_ADD);
    }

    void watch(int fd, std::uint64_t key, std::uint32_t events, int operation) const {
        epoll_event entry{};
        entry.events = events;
        entry.data.u64 = key;
        ::epoll_ctl(epoll.get(), operation, fd, &entry);
    }

    template <class Fn>
    void count(Fn&& change) {
        {
            std::lock_guard const lock{mutex};
            change(counts);
        }
        changed.notify_all();
    }

    void run() {
        block_sigpipe_in_this_thread();
        std::array<epoll_event, 256> events{};
        while (!stopping) {
            auto const ready = ::epoll_wait(epoll.get(), events.data(),
                                            static_cast<int>(events.size()), next_delay_ms());
            for (int i = 0; i < ready; ++i) {
                auto const key = events[static_cast<std::size_t>(i)].data.u64;
                auto const what = events[static_cast<std::size_t>(i)].events;
                if (key == listener_key) {
                    accept_all();
                } else if (key == event_key) {
                    run_commands();
                } else if (auto const found = connections.find(key); found != connections.end()) {
                    auto& connection = *found->second;
                    if ((what & ~EPOLLOUT) != 0) on_readable(connection);
                    if (connections.contains(key)) flush(connection);
                }
            }
            send_due();
        }
        connections.clear();
    }

    int next_delay_ms() const {
        if (delayed.empty()) return -1;
        auto const left = delayed.begin()->first - std::chrono::steady_clock::now();
        return std::max(
            0, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
    }

    void send_due() {
        if (delayed.empty()) return;
        auto const now = std::chrono::steady_clock::now();
        while (!delayed.empty() && delayed.begin()->first <= now) {
            auto pending = std::move(delayed.begin()->second);
            delayed.erase(delayed.begin());
            answer(std::move(pending));
        }
    }

    void run_commands() {
        std::uint64_t value = 0;
        [[maybe_unused]] auto const got = ::read(event.get(), &value, sizeof value);
        std::vector<std::function<void()>> todo;
        {
            std::lock_guard const lock{mutex};
            todo.swap(commands);
        }
        for (auto& work : todo) work();
    }

    void accept_all() {
        while (
            Fd socket{::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)}) {
            int const on = 1;
            ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            auto connection = std::make_unique<Connection>();
            connection->key = next_key++;
            connection->socket = std::move(socket);
            if (options.tls) {
                connection->tls.reset(SSL_new(options.tls.get()));
                SSL_set_fd(connection->tls.get(), connection->socket.get());
                SSL_set_accept_state(connection->tls.get());
                connection->handshaking = true;
            }
            count([&](HttpServerCounts& all) {
                connection->index = all.connections++;
                ++all.open_connections;
            });
            watch(connection->socket.get(), connection->key, EPOLLIN, EPOLL_CTL_ADD);
            connections.emplace(connection->key, std::move(connection));
        }
    }

    void drop(Connection& connection) {
        connections.erase(connection.key);
        count([](HttpServerCounts& all) { --all.open_connections; });
    }

    void on_readable(Connection& connection) {
        if (connection.handshaking) {
            ERR_clear_error();
            auto const result = SSL_accept(connection.tls.get());
            if (result != 1) {
                auto const error = SSL_get_error(connection.tls.get(), result);
                if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
                    drop(connection);
                }
                return;
            }
            connection.handshaking = false;
            if (SSL_session_reused(connection.tls.get()) == 1) {
                count([](HttpServerCounts& all) { ++all.resumed; });
            }
        }
        std::array<char, 65536> chunk;
        for (bool more = true; more;) {
            long got = 0;
            if (connection.tls) {
                ERR_clear_error();
                got = SSL_read(connection.tls.get(), chunk.data(), static_cast<int>(chunk.size()));
                if (got <= 0) {
                    auto const error = SSL_get_error(connection.tls.get(), static_cast<int>(got));
                    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) break;
                    drop(connection);
                    return;
                }
            } else {
                got = ::recv(connection.socket.get(), chunk.data(), chunk.size(), 0);
                if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
                if (got <= 0) {
                    drop(connection);
                    return;
                }
                more = got == static_cast<long>(chunk.size());
            }
            if (!take(connection, {chunk.data(), static_cast<std::size_t>(got)})) {
                drop(connection);
                return;
            }
        }
    }

    /// False if the connection must end.
    bool take(Connection& connection, std::string_view bytes) {
        if (connection.lingering) return true;
        if (connection.mode == Connection::Mode::http2) return take_http2(connection, bytes);
        connection.in += bytes;
        if (connection.mode == Connection::Mode::unknown) {
            auto const common = std::min(connection.in.size(), preface.size());
            if (connection.in.compare(0, common, preface.substr(0, common)) != 0) {
                connection.mode = Connection::Mode::http1;
            } else if (common == preface.size()) {
                connection.mode = Connection::Mode::http2;
                begin_http2(connection);
                return take_http2(connection, std::exchange(connection.in, {}));
            } else {
                return true;
            }
        }
        try {
            take_http1(connection);
        } catch (std::exception const&) {
            return false;  // not HTTP
        }
        return true;
    }

    void take_http1(Connection& connection) {
        while (!connection.answering && !connection.close_when_sent) {
            auto const end = connection.in.find("\r\n\r\n");
            if (end == std::string::npos) return;
            auto request = parse_request_head(std::string_view{connection.in}.substr(0, end));
            request.connection = connection.index;
            auto at = end + 4;
            auto body = parse_request_body(request, connection.in, at);
            if (!body) return;
            request.body = std::move(*body);
            connection.in.erase(0, at);
            connection.answering = true;
            react(connection, 0, request);
        }
    }

    void react(Connection& connection, std::int32_t stream, ReceivedRequest const& request) {
        auto const id = request.header("x-request-id");
        auto const repeated = !id.empty() && !ids.insert(id).second;
        count([&](HttpServerCounts& all) {
            ++all.requests;
            if (repeated) ++all.repeated_ids;
        });
        Pending pending{
            .connection = connection.key, .stream = stream, .reaction = handler(request)};
        if (pending.reaction.hold && !released) {
            held.push_back(std::move(pending));
        } else if (pending.reaction.delay.count() > 0) {
            delayed.emplace(std::chrono::steady_clock::now() + pending.reaction.delay,
                            std::move(pending));
        } else {
            answer_on(connection, std::move(pending));
        }
    }

    void answer(Pending pending) {
        auto const found = connections.find(pending.connection);
        if (found == connections.end()) return;
        auto const key = pending.connection;
        answer_on(*found->second, std::move(pending));
        if (auto const still = connections.find(key); still != connections.end()) {
            take_http1_if_any(*still->second);
            flush(*still->second);
        }
    }

    void take_http1_if_any(Connection& connection) {
        if (connection.mode == Connection::Mode::http1) take_http1(connection);
    }

    void answer_on(Connection& connection, Pending pending) {
        auto& reaction = pending.reaction;
        if (connection.mode == Connection::Mode::http1) {
            if (reaction.close) {
                reaction.answer.headers.add("Connection", "close");
                connection.close_when_sent = true;
            }
            connection.out += http1_answer(reaction.answer);
            connection.answering = false;
            return;
        }
        auto const found = connection.streams.find(pending.stream);
        if (found == connection.streams.end()) return;
        auto& outgoing = found->second.outgoing;
        outgoing.body = std::move(reaction.answer.body);
        auto const status = std::to_string(reaction.answer.status);
        std::vector<nghttp2_nv> lines;
        auto const add = [&](std::string_view name, std::string_view value) {
            lines.push_back(
                {.name = reinterpret_cast<unsigned char*>(const_cast<char*>(name.data())),
                 .value = reinterpret_cast<unsigned char*>(const_cast<char*>(value.data())),
                 .namelen = name.size(),
                 .valuelen = value.size(),
                 .flags = NGHTTP2_NV_FLAG_NONE});
        };
        add(":status", status);
        for (auto const& [name, value] : reaction.answer.headers) add(name, value);
        nghttp2_data_provider provider{};
        provider.source.ptr = &outgoing;
        provider.read_callback = [](nghttp2_session*, std::int32_t, std::uint8_t* into,
                                    std::size_t size, std::uint32_t* flags,
                                    nghttp2_data_source* source, void*) -> ssize_t {
            auto& from = *static_cast<Outgoing*>(source->ptr);
            auto const piece = std::min(size, from.body.size() - from.at);
            std::copy_n(from.body.data() + from.at, piece, into);
            from.at += piece;
            if (from.at == from.body.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
            return static_cast<ssize_t>(piece);
        };
        nghttp2_submit_response(connection.session.get(), pending.stream, lines.data(),
                                lines.size(), outgoing.body.empty() ? nullptr : &provider);
    }

    // HTTP/2 -------------------------------------------------------------------------------

    struct Context {
        Impl* server;
        Connection* connection;
    };

    void set_callbacks() {
        nghttp2_session_callbacks_set_on_begin_headers_callback(
            callbacks, [](nghttp2_session*, nghttp2_frame const* frame, void* user) {
                auto& connection = *static_cast<Context*>(user)->connection;
                if (frame->hd.type == NGHTTP2_HEADERS) {
                    connection.streams[frame->hd.stream_id].request.connection = connection.index;
                    auto const open = static_cast<int>(connection.streams.size());
                    static_cast<Context*>(user)->server->count([&](HttpServerCounts& all) {
                        all.most_streams = std::max(all.most_streams, open);
                    });
                }
                return 0;
            });
        nghttp2_session_callbacks_set_on_header_callback(
            callbacks, [](nghttp2_session*, nghttp2_frame const* frame, std::uint8_t const* name,
                          std::size_t name_size, std::uint8_t const* value, std::size_t value_size,
                          std::uint8_t, void* user) {
                auto& request =
                    static_cast<Context*>(user)->connection->streams[frame->hd.stream_id].request;
                std::string key{reinterpret_cast<char const*>(name), name_size};
                std::string text{reinterpret_cast<char const*>(value), value_size};
                if (key == ":method") {
                    request.method = std::move(text);
                } else if (key == ":path") {
                    request.target = std::move(text);
                } else {
                    request.headers.add(std::move(key), std::move(text));
                }
                return 0;
            });
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
            callbacks, [](nghttp2_session*, std::uint8_t, std::int32_t stream,
                          std::uint8_t const* data, std::size_t size, void* user) {
                static_cast<Context*>(user)->connection->streams[stream].request.body.append(
                    reinterpret_cast<char const*>(data), size);
                return 0;
            });
        nghttp2_session_callbacks_set_on_frame_recv_callback(
            callbacks, [](nghttp2_session*, nghttp2_frame const* frame, void* user) {
                auto const& context = *static_cast<Context*>(user);
                auto const type = frame->hd.type;
                if (type == NGHTTP2_RST_STREAM) {
                    context.server->count([](HttpServerCounts& all) { ++all.resets; });
                } else if (type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) {
                    context.server->count([](HttpServerCounts& all) { ++all.pings; });
                } else if ((type == NGHTTP2_HEADERS || type == NGHTTP2_DATA) &&
                           (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
                    auto const found = context.connection->streams.find(frame->hd.stream_id);
                    if (found != context.connection->streams.end()) {
                        context.server->react(*context.connection, found->first,
                                              found->second.request);
                    }
                }
                return 0;
            });
        nghttp2_session_callbacks_set_on_stream_close_callback(
            callbacks, [](nghttp2_session*, std::int32_t stream, std::uint32_t, void* user) {
                static_cast<Context*>(user)->connection->streams.erase(stream);
                return 0;
            });
    }

    void begin_http2(Connection& connection) {
        nghttp2_session* session = nullptr;
        connection.context = std::make_shared<Context>(Context{this, &connection});
        nghttp2_session_server_new(&session, callbacks, connection.context.get());
        connection.session.reset(session);
        std::array<nghttp2_settings_entry, 2> const settings{
            {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options.max_streams},
             {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, options.window}}};
        nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
        nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, 1 << 28);
    }

    static bool take_http2(Connection& connection, std::string_view bytes) {
        return nghttp2_session_mem_recv(connection.session.get(),
                                        reinterpret_cast<std::uint8_t const*>(bytes.data()),
                                        bytes.size()) >= 0;
    }

    // Output -------------------------------------------------------------------------------

    void flush(Connection& connection) {
        if (connection.handshaking || connection.lingering) return;
        for (;;) {
            if (connection.out_at == connection.out.size()) {
                connection.out.clear();
                connection.out_at = 0;
            }
            while (connection.session && connection.out.size() < high_water) {
                std::uint8_t const* bytes = nullptr;
                auto const size = nghttp2_session_mem_send(connection.session.get(), &bytes);
                if (size <= 0) break;
                connection.out.append(reinterpret_cast<char const*>(bytes),
                                      static_cast<std::size_t>(size));
            }
            if (connection.out.empty()) break;
            long sent = 0;
            auto const* from = connection.out.data() + connection.out_at;
            auto const left = connection.out.size() - connection.out_at;
            if (connection.tls) {
                ERR_clear_error();
                sent = SSL_write(connection.tls.get(), from, static_cast<int>(left));
                if (sent <= 0) {
                    auto const error = SSL_get_error(connection.tls.get(), static_cast<int>(sent));
                    if (error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ) {
                        want_write(connection, true);
                        return;
                    }
                    drop(connection);
                    return;
                }
            } else {
                sent = ::send(connection.socket.get(), from, left, MSG_NOSIGNAL);
                if (sent < 0) {
                    if (errno == EAGAIN || errno == EINTR) {
                        want_write(connection, true);
                        return;
                    }
                    drop(connection);
                    return;
                }
            }
            connection.out_at += static_cast<std::size_t>(sent);
            count(
                [&](HttpServerCounts& all) { all.bytes_sent += static_cast<std::uint64_t>(sent); });
        }
        want_write(connection, false);
        auto const over = connection.session != nullptr &&
                          nghttp2_session_want_read(connection.session.get()) == 0 &&
                          nghttp2_session_want_write(connection.session.get()) == 0;
        if (connection.close_when_sent || over) close_orderly(connection);
    }

    void want_write(Connection& connection, bool on) {
        if (std::exchange(connection.wants_write, on) == on) return;
        watch(connection.socket.get(), connection.key, on ? EPOLLIN | EPOLLOUT : EPOLLIN,
              EPOLL_CTL_MOD);
    }

    // Closing with bytes unread would reset the connection and take answers with it that are
    // still on their way.
    static void close_orderly(Connection& connection) {
        if (connection.tls) SSL_shutdown(connection.tls.get());
        ::shutdown(connection.socket.get(), SHUT_WR);
        connection.lingering = true;
    }

    std::vector<std::uint64_t> keys() const {
        std::vector<std::uint64_t> all;
        for (auto const& [key, connection] : connections) all.push_back(key);
        return all;
    }

    Handler handler;
    HttpServerOptions options;
    Fd epoll;
    Fd event;
    Fd listener;
    std::uint16_t port{0};
    nghttp2_session_callbacks* callbacks{nullptr};
    std::uint64_t next_key{2};
    std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections;
    std::unordered_set<std::string> ids;
    std::vector<Pending> held;
    std::multimap<std::chrono::steady_clock::time_point, Pending> delayed;
    bool released{false};
    bool stopping{false};

    mutable std::mutex mutex;  ///< guards the members below
    mutable std::condition_variable changed;
    HttpServerCounts counts;
    std::vector<std::function<void()>> commands;
    std::thread thread;
};

HttpServer::HttpServer(Handler handler) : HttpServer{std::move(handler), {}} {}
HttpServer::HttpServer(Handler handler, HttpServerOptions options)
    : impl_{std::make_unique<Impl>(std::move(handler), std::move(options))} {}
HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::port() const noexcept { return impl_->port; }

std::string HttpServer::url(std::string_view path) const {
    return (impl_->options.tls ? "https://" : "http://") +
           loopback_authority(impl_->options.family, impl_->port) + std::string{path};
}

HttpServerCounts HttpServer::counts() const {
    std::lock_guard const lock{impl_->mutex};
    return impl_->counts;
}

bool HttpServer::wait_for(std::function<bool(HttpServerCounts const&)> const& done) const {
    std::unique_lock lock{impl_->mutex};
    return impl_->changed.wait_for(lock, std::chrono::seconds{60},
                                   [&] { return done(impl_->counts); });
}

void HttpServer::release() {
    impl_->command([this] {
        impl_->released = true;
        for (auto& pending : std::exchange(impl_->held, {})) impl_->answer(std::move(pending));
    });
}

void HttpServer::say_goodbye() {
    impl_->command([this] {
        for (auto const key : impl_->keys()) {
            auto& connection = *impl_->connections.at(key);
            if (connection.session) {
                nghttp2_submit_goaway(
                    connection.session.get(), NGHTTP2_FLAG_NONE,
                    nghttp2_session_get_last_proc_stream_id(connection.session.get()),
                    NGHTTP2_NO_ERROR, nullptr, 0);
                impl_->flush(connection);
            } else if (connection.idle()) {
                impl_->close_orderly(connection);
            }
        }
    });
}

void HttpServer::close_idle() {
    impl_->command([this] {
        for (auto const key : impl_->keys()) {
            auto& connection = *impl_->connections.at(key);
            if (connection.idle()) impl_->close_orderly(connection);
        }
    });
}

void HttpServer::kill() {
    impl_->command([this] {
        impl_->listener.reset();
        impl_->held.clear();
        impl_->delayed.clear();
        for (auto const key : impl_->keys()) {
            reset_on_close(impl_->connections.at(key)->socket.get());
            impl_->drop(*impl_->connections.at(key));
        }
    });
}

void HttpServer::restart() {
    impl_->command([this] { impl_->listen(); });
}

Reaction echo(ReceivedRequest const& request) {
    Reaction reaction{.answer = {.body = request.body}};
    if (auto const id = request.header("x-request-id"); !id.empty()) {
        reaction.answer.headers.add("x-request-id", id);
    }
    return reaction;
}

}  // namespace tinkxx::test
