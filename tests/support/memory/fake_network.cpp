#include "support/memory/fake_network.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <utility>

namespace tinkxx::test {

net::IoResult FakeStream::read(std::span<char> into) {
    using Status = net::IoResult::Status;
    auto& pending = far_->pending_;
    if (pending.empty()) {
        if (far_->reset_) return {.status = Status::error};
        return {.status = far_->closed_ ? Status::closed : Status::would_block};
    }
    auto const count = std::min({into.size(), pending.size(), far_->piece});
    std::copy_n(pending.data(), count, into.data());
    pending.erase(0, count);
    return {.bytes = count};
}

net::IoResult FakeStream::write(std::span<iovec const> pieces) {
    using Status = net::IoResult::Status;
    if (far_->write_breaks) return {.status = Status::error};
    std::size_t written = 0;
    for (auto const& piece : pieces) {
        auto const count = std::min(piece.iov_len, far_->write_room);
        far_->received.append(static_cast<char const*>(piece.iov_base), count);
        far_->write_room -= far_->write_room == SIZE_MAX ? 0 : count;
        written += count;
        if (count < piece.iov_len) break;
    }
    if (written == 0) return {.status = Status::would_block};
    return {.bytes = written};
}

void Record::on_head(Head value) {
    head = std::move(value);
    if (when_head) when_head(*this);
}
void Record::on_data(std::span<char const> data) {
    body.append(data.data(), data.size());
    if (when_data) when_data(*this);
}
void Record::on_done(Timing const&) {
    done = true;
    ++ends;
    if (when_ended) when_ended(*this);
}
void Record::on_failure(Failure value) {
    failure = std::move(value);
    ++ends;
    if (when_ended) when_ended(*this);
}

class FakeNetwork::Connector final : public net::Connector {
public:
    explicit Connector(FakeNetwork& network) : network_{network} {}

    std::unique_ptr<net::Dial> dial(net::Origin const&, HttpVersion,
                                    net::DialOwner& owner) override {
        auto dial = std::make_unique<Attempt>(*this, owner);
        attempts.push_back(dial.get());
        if (!network_.hold) network_.loop_.post([this] { finish(); });
        return dial;
    }

    void finish() {
        while (!attempts.empty()) {
            auto& owner = attempts.front()->owner;
            attempts.front()->connector = nullptr;
            attempts.erase(attempts.begin());
            if (network_.refuse) {
                owner.on_dial_failed({.kind = FailureKind::connect, .message = *network_.refuse});
                continue;
            }
            auto peer = std::make_shared<FakePeer>();
            network_.peers_.push_back(peer);
            if (network_.greet) network_.greet(*peer);
            owner.on_connected(std::make_unique<FakeStream>(peer, network_.alpn));
        }
    }

    struct Attempt final : net::Dial {
        Attempt(Connector& from, net::DialOwner& whose) : connector{&from}, owner{whose} {}
        ~Attempt() override {
            if (connector != nullptr) std::erase(connector->attempts, this);
        }
        Connector* connector;
        net::DialOwner& owner;
    };

    std::vector<Attempt*> attempts;

private:
    FakeNetwork& network_;
};

FakeNetwork::FakeNetwork(NetOptions options) {
    auto connector = std::make_unique<Connector>(*this);
    connector_ = connector.get();
    transport_ =
        std::make_unique<net::NetTransport>(loop_, std::move(options), std::move(connector));
}

FakeNetwork::~FakeNetwork() {
    on_loop([this] {
        for (auto const& record : records_) transport_->cancel(record->call);
    });
}

Record& FakeNetwork::start(Request request) {
    auto& record = *records_.emplace_back(std::make_unique<Record>());
    loop_.post([this, &record, moved = std::move(request)]() mutable {
        record.call = transport_->start(std::move(moved), record);
    });
    settle();
    return record;
}

Record& FakeNetwork::get(std::string url) { return start(request_to(std::move(url))); }

void FakeNetwork::cancel(Record& record) {
    on_loop([&] { transport_->cancel(record.call); });
}

void FakeNetwork::on_loop(std::function<void()> fn) {
    loop_.post([fn = std::move(fn)] { fn(); });
    settle();
}

bool FakeNetwork::deliver() {
    bool any = false;
    for (auto const& peer : peers_) {
        if (peer->stream_ == nullptr) continue;
        bool const readable = !peer->pending_.empty() || peer->closed_ || peer->reset_;
        if (peer->wants_read_ && readable) {
            peer->wants_read_ = false;
            any = true;
            loop_.post([peer] {
                if (peer->stream_ != nullptr) peer->stream_->owner_->on_readable();
            });
        }
        if (peer->wants_write_ && (peer->write_room > 0 || peer->write_breaks)) {
            peer->wants_write_ = false;
            any = true;
            loop_.post([peer] {
                if (peer->stream_ != nullptr) peer->stream_->owner_->on_writable();
            });
        }
    }
    return any;
}

void FakeNetwork::settle() {
    for (;;) {
        bool const worked = loop_.turn(std::chrono::nanoseconds{0});
        if (!deliver() && !worked) return;
    }
}

void FakeNetwork::wait_until(std::function<bool()> const& condition) {
    while (!condition()) {
        loop_.turn(std::chrono::milliseconds{50});
        settle();
    }
}

std::size_t FakeNetwork::pending_dials() const { return connector_->attempts.size(); }

void FakeNetwork::finish_dials() {
    on_loop([this] { connector_->finish(); });
}

Request request_to(std::string url, std::string method, std::string body) {
    Request request;
    request.method = std::move(method);
    request.url = std::move(url);
    if (!body.empty()) request.body.tail = std::make_shared<std::string const>(std::move(body));
    return request;
}

}  // namespace tinkxx::test
