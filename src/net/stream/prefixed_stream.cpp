#include "net/stream/prefixed_stream.hpp"

#include "base/loop/event_loop.hpp"

#include <algorithm>
#include <utility>

namespace tinkxx::net {
namespace {

class PrefixedStream final : public Stream, private Timer {
public:
    PrefixedStream(base::EventLoop& loop, std::unique_ptr<Stream> lower, std::string prefix)
        : loop_{loop}, lower_{std::move(lower)}, prefix_{std::move(prefix)} {}

    void set_owner(StreamOwner* owner) noexcept override {
        owner_ = owner;
        lower_->set_owner(owner);
    }
    void want_read() override {
        if (prefix_.empty()) {
            lower_->want_read();
        } else {
            loop_.arm(*this, loop_.now(), Precision::exact);
        }
    }
    void want_write() override { lower_->want_write(); }

    IoResult read(std::span<char> into) override {
        if (prefix_.empty()) return lower_->read(into);
        auto const bytes = std::min(into.size(), prefix_.size());
        std::copy_n(prefix_.begin(), bytes, into.begin());
        prefix_.erase(0, bytes);
        return {.bytes = bytes};
    }
    IoResult write(std::span<iovec const> pieces) override { return lower_->write(pieces); }

    std::string error_text() const override { return lower_->error_text(); }
    std::string_view alpn() const noexcept override { return lower_->alpn(); }
    bool resumed() const noexcept override { return lower_->resumed(); }
    std::string_view peer() const noexcept override { return lower_->peer(); }

private:
    void on_time() override {
        if (owner_ != nullptr) owner_->on_readable();
    }

    base::EventLoop& loop_;
    std::unique_ptr<Stream> lower_;
    std::string prefix_;
    StreamOwner* owner_{nullptr};
};

}  // namespace

std::unique_ptr<Stream> make_prefixed_stream(base::EventLoop& loop, std::unique_ptr<Stream> lower,
                                             std::string prefix) {
    return std::make_unique<PrefixedStream>(loop, std::move(lower), std::move(prefix));
}

}  // namespace tinkxx::net
