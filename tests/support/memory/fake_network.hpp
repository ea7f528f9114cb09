#pragma once

#include "net/dial/dialer.hpp"
#include "net/stream/stream.hpp"
#include "net/transport/net_transport.hpp"

#include "base/loop/event_loop.hpp"

#include <tinkxx/transport.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::test {

/// The far end of a connection in memory: what the client wrote, and what it is to read.
class FakePeer {
public:
    std::string received{};            ///< what the client wrote and nobody took yet
    std::size_t write_room{SIZE_MAX};  ///< how much the client may write before it blocks
    std::size_t piece{SIZE_MAX};       ///< how much one read of the client gives at most
    bool write_breaks{false};          ///< the next write of the client fails

    void send(std::string_view bytes) { pending_ += bytes; }
    /// An orderly end after what was sent.
    void close() { closed_ = true; }
    /// The connection breaks after what was sent.
    void reset() { reset_ = true; }
    [[nodiscard]] bool client_closed() const noexcept { return stream_ == nullptr; }
    [[nodiscard]] std::string take() { return std::exchange(received, {}); }

private:
    friend class FakeStream;
    friend class FakeNetwork;

    std::string pending_;
    bool closed_{false};
    bool reset_{false};
    bool wants_read_{false};
    bool wants_write_{false};
    class FakeStream* stream_{nullptr};
};

class FakeStream final : public net::Stream {
public:
    FakeStream(std::shared_ptr<FakePeer> peer, std::string alpn)
        : far_{std::move(peer)}, alpn_{std::move(alpn)} {
        far_->stream_ = this;
    }
    ~FakeStream() override { far_->stream_ = nullptr; }

    void set_owner(net::StreamOwner* owner) noexcept override { owner_ = owner; }
    void want_read() override { far_->wants_read_ = true; }
    void want_write() override { far_->wants_write_ = true; }
    net::IoResult read(std::span<char> into) override;
    net::IoResult write(std::span<iovec const> pieces) override;
    std::string error_text() const override { return "connection reset by peer"; }
    std::string_view alpn() const noexcept override { return alpn_; }
    bool resumed() const noexcept override { return false; }
    std::string_view peer() const noexcept override { return "peer:1"; }

private:
    friend class FakeNetwork;
    std::shared_ptr<FakePeer> far_;
    std::string alpn_;
    net::StreamOwner* owner_{nullptr};
};

/// How one call went.
struct Record final : ReplySink {
    std::optional<Head> head{};
    std::string body{};
    std::optional<Failure> failure{};
    bool done{false};
    int ends{0};
    Call call{};
    std::function<void(Record&)> when_head{};
    std::function<void(Record&)> when_data{};
    std::function<void(Record&)> when_ended{};

    [[nodiscard]] bool ended() const noexcept { return ends > 0; }
    void on_head(Head value) override;
    void on_data(std::span<char const> data) override;
    void on_done(Timing const&) override;
    void on_failure(Failure value) override;
};

/// A network transport whose connections lead to `FakePeer`s: every byte and every step of both
/// ends is in the hands of the test, on one thread.
class FakeNetwork {
public:
    explicit FakeNetwork(NetOptions options = NetOptions{});
    ~FakeNetwork();
    FakeNetwork(FakeNetwork const&) = delete;
    FakeNetwork& operator=(FakeNetwork const&) = delete;

    std::string alpn{};                   ///< what new connections negotiate
    std::optional<std::string> refuse{};  ///< attempts to connect fail with this
    bool hold{false};                     ///< attempts to connect stay pending
    /// What each new peer does at once, e.g. sends HTTP/2 SETTINGS.
    std::function<void(FakePeer&)> greet{};

    Record& start(Request request);
    Record& get(std::string url = "http://host/");
    void cancel(Record& record);
    /// Runs both ends until nothing more happens.
    void settle();
    /// Runs `fn` on the loop, then settles.
    void on_loop(std::function<void()> fn);
    /// Lets real time pass until `condition` holds: for what only a timer can bring about.
    void wait_until(std::function<bool()> const& condition);

    [[nodiscard]] std::vector<std::shared_ptr<FakePeer>> const& peers() const { return peers_; }
    [[nodiscard]] FakePeer& peer(std::size_t at) { return *peers_.at(at); }
    [[nodiscard]] std::size_t pending_dials() const;
    void finish_dials();
    [[nodiscard]] Transport& transport() { return *transport_; }
    [[nodiscard]] NetStats stats() { return net_stats(*transport_); }

private:
    class Connector;
    friend class Connector;
    bool deliver();

    base::EventLoop loop_{1};
    Connector* connector_{nullptr};  // the transport's
    std::vector<std::shared_ptr<FakePeer>> peers_;
    std::vector<std::unique_ptr<Record>> records_;
    std::unique_ptr<net::NetTransport> transport_;
};

[[nodiscard]] Request request_to(std::string url, std::string method = "GET",
                                 std::string body = {});

}  // namespace tinkxx::test
