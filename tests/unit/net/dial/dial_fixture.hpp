#pragma once

#include "base/loop/event_loop.hpp"
#include "net/dial/dialer.hpp"

#include <gtest/gtest.h>

#include <sys/uio.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::net {

/// What became of an attempt to connect.
struct Dialled final : DialOwner {
    std::unique_ptr<Stream> stream{};
    std::optional<FailureKind> failure{};
    std::string message{};
    bool permanent{false};
    std::unique_ptr<Dial> dial{};
    bool keep_dial{true};

    [[nodiscard]] bool done() const noexcept { return stream != nullptr || failure.has_value(); }

    void on_connected(std::unique_ptr<Stream> connected) override {
        stream = std::move(connected);
        if (!keep_dial) dial.reset();
    }
    void on_dial_failed(DialFailure why) override {
        failure = why.kind;
        message = std::move(why.message);
        permanent = why.permanent;
        if (!keep_dial) dial.reset();
    }
};

/// Counts what a stream tells.
struct Ear final : StreamOwner {
    int readable{0};
    int writable{0};
    std::function<void()> then{};  ///< called last: may destroy the stream

    void on_readable() override {
        ++readable;
        if (then) then();
    }
    void on_writable() override {
        ++writable;
        if (then) then();
    }
};

/// A loop on the test's own thread, and ways to use a stream as if it blocked.
class DialTest : public ::testing::Test {
protected:
    /// False if `condition` does not hold within a time that no working run needs.
    bool run_until(std::function<bool()> const& condition) {
        using namespace std::chrono_literals;
        auto const limit = loop_.now() + 60s;
        while (!condition()) {
            if (loop_.now() > limit) return false;
            loop_.turn(1s);
        }
        return true;
    }

    void start(Dialer& dialer, Origin const& origin, HttpVersion version, Dialled& dialled) {
        dialled.dial = dialer.dial(origin, version, dialled);
    }

    /// Dials and waits for the outcome.
    std::unique_ptr<Dialled> dial(Dialer& dialer, Origin const& origin,
                                  HttpVersion version = HttpVersion::automatic) {
        auto dialled = std::make_unique<Dialled>();
        start(dialer, origin, version, *dialled);
        EXPECT_FALSE(dialled->done()) << "told inside dial()";
        EXPECT_TRUE(run_until([&] { return dialled->done(); }));
        return dialled;
    }

    /// Waits until a read may succeed.
    void await_readable(Stream& stream) {
        Ear ear;
        stream.set_owner(&ear);
        stream.want_read();
        EXPECT_EQ(ear.readable, 0) << "told inside want_read()";
        EXPECT_TRUE(run_until([&] { return ear.readable > 0; }));
        stream.set_owner(nullptr);
    }
    void await_writable(Stream& stream) {
        Ear ear;
        stream.set_owner(&ear);
        stream.want_write();
        EXPECT_EQ(ear.writable, 0) << "told inside want_write()";
        EXPECT_TRUE(run_until([&] { return ear.writable > 0; }));
        stream.set_owner(nullptr);
    }

    struct ReadOutcome {
        std::string text{};
        IoResult::Status status{IoResult::Status::ok};
    };
    /// Reads until `count` bytes are there or the stream ends.
    ReadOutcome read(Stream& stream, std::size_t count, std::size_t buffer_bytes = 65536) {
        ReadOutcome outcome;
        std::vector<char> buffer(buffer_bytes);
        while (outcome.text.size() < count) {
            auto const room = std::min(buffer.size(), count - outcome.text.size());
            auto const result = stream.read({buffer.data(), room});
            if (result.status == IoResult::Status::would_block) {
                await_readable(stream);
                if (HasFailure()) return outcome;
            } else if (result.status == IoResult::Status::ok) {
                EXPECT_GT(result.bytes, 0U);
                outcome.text.append(buffer.data(), result.bytes);
            } else {
                outcome.status = result.status;
                return outcome;
            }
        }
        return outcome;
    }
    /// Reads to the end.
    ReadOutcome read_all(Stream& stream) { return read(stream, std::string::npos); }

    IoResult::Status write(Stream& stream, std::string_view text) {
        while (!text.empty()) {
            iovec const piece{.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
            auto const result = stream.write({&piece, 1});
            if (result.status == IoResult::Status::would_block) {
                await_writable(stream);
                if (HasFailure()) return result.status;
            } else if (result.status == IoResult::Status::ok) {
                text.remove_prefix(result.bytes);
            } else {
                return result.status;
            }
        }
        return IoResult::Status::ok;
    }

    base::EventLoop loop_{1};
};

}  // namespace tinkxx::net
