// TLS over a stream in memory, where the test decides how many bytes get through and when.
#include "net/tls/tls.hpp"

#include "base/loop/event_loop.hpp"
#include "support/sockets/certificates.hpp"
#include "support/sockets/sockets.hpp"

#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::net {
namespace {

using Status = IoResult::Status;

/// What the stream under TLS does, seen from the test.
struct Pipe {
    std::string incoming{};
    std::string outgoing{};
    std::size_t room{std::string::npos};  ///< bytes that it takes before it blocks
    bool ended{false};
    bool broken{false};
    int reads{0};
    bool wants_read{false};
    bool wants_write{false};
    StreamOwner* owner{nullptr};
};

class PipeStream final : public Stream {
public:
    explicit PipeStream(Pipe& pipe) : pipe_{pipe} {}
    void set_owner(StreamOwner* owner) noexcept override { pipe_.owner = owner; }
    void want_read() override { pipe_.wants_read = true; }
    void want_write() override { pipe_.wants_write = true; }
    IoResult read(std::span<char> into) override {
        ++pipe_.reads;
        auto const bytes = std::min(into.size(), pipe_.incoming.size());
        if (bytes == 0) {
            return {.status = pipe_.broken  ? Status::error
                              : pipe_.ended ? Status::closed
                                            : Status::would_block};
        }
        std::copy_n(pipe_.incoming.begin(), bytes, into.begin());
        pipe_.incoming.erase(0, bytes);
        return {.bytes = bytes};
    }
    IoResult write(std::span<iovec const> pieces) override {
        if (pipe_.broken) return {.status = Status::error};
        std::size_t bytes = 0;
        for (auto const& piece : pieces) {
            auto const taken = std::min(piece.iov_len, pipe_.room);
            pipe_.outgoing.append(static_cast<char const*>(piece.iov_base), taken);
            bytes += taken;
            pipe_.room -= taken;
        }
        if (bytes == 0) return {.status = Status::would_block};
        return {.bytes = bytes};
    }
    std::string error_text() const override { return "broken on purpose"; }
    std::string_view alpn() const noexcept override { return {}; }
    bool resumed() const noexcept override { return false; }
    std::string_view peer() const noexcept override { return "memory"; }

private:
    Pipe& pipe_;
};

/// A TLS server whose wire is a pair of strings.
class MemoryServer {
public:
    explicit MemoryServer(SSL_CTX* context) : ssl_{SSL_new(context), &SSL_free} {
        ::SSL_set_bio(ssl_.get(), ::BIO_new(::BIO_s_mem()), ::BIO_new(::BIO_s_mem()));
        ::SSL_set_accept_state(ssl_.get());
    }

    /// Takes all that the client sent and gives it all that there is for it.
    void exchange(Pipe& pipe) {
        if (!pipe.outgoing.empty()) {
            ::BIO_write(::SSL_get_rbio(ssl_.get()), pipe.outgoing.data(),
                        static_cast<int>(pipe.outgoing.size()));
            pipe.outgoing.clear();
        }
        if (::SSL_is_init_finished(ssl_.get()) == 0) ::SSL_do_handshake(ssl_.get());
        std::array<char, 20000> buffer;
        for (int got = 0; (got = ::SSL_read(ssl_.get(), buffer.data(), buffer.size())) > 0;) {
            received.append(buffer.data(), static_cast<std::size_t>(got));
            records.push_back(static_cast<std::size_t>(got));
        }
        for (int got = 0;
             (got = ::BIO_read(::SSL_get_wbio(ssl_.get()), buffer.data(), buffer.size())) > 0;) {
            pipe.incoming.append(buffer.data(), static_cast<std::size_t>(got));
        }
    }
    void send(std::string_view text) {
        ::SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size()));
    }
    [[nodiscard]] SSL* native() const noexcept { return ssl_.get(); }

    std::string received{};
    std::vector<std::size_t> records{};

private:
    test::SslHandle ssl_;
};

struct World {
    World()
        : files{certificates.issue_for_loopback()},
          server_context{test::make_tls_server(
              {.certificate_file = files.certificate_file, .key_file = files.key_file})},
          context{TlsContext::make({.ca_file = certificates.ca_file()})} {}

    test::Certificates certificates;
    test::CertificateFiles files;
    std::shared_ptr<SSL_CTX> server_context;
    std::shared_ptr<TlsContext> context;
    base::EventLoop loop{1};
};

struct Handshaken {
    explicit Handshaken(World& world)
        : server{world.server_context.get()},
          stream{world.context->wrap(world.loop, std::make_unique<PipeStream>(pipe),
                                     {.host = "localhost", .port = 443})} {
        for (int i = 0; i < 10 && stream->handshake() == TlsStream::Handshake::pending; ++i) {
            server.exchange(pipe);
        }
        EXPECT_EQ(stream->handshake(), TlsStream::Handshake::done) << stream->error_text();
        server.exchange(pipe);
    }

    Pipe pipe;
    MemoryServer server;
    std::unique_ptr<TlsStream> stream;
};

/// Bytes whose place can be told from their value.
std::string patterned(std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>((i * 131 + i / 251) % 253);
    return text;
}

/// Draws that are the same in every run.
class Dice {
public:
    explicit Dice(unsigned seed) : engine_{seed} {}
    std::size_t below(std::size_t end) { return engine_() % end; }
    std::size_t one_of(std::initializer_list<std::size_t> values) {
        return values.begin()[below(values.size())];
    }

private:
    std::mt19937 engine_;
};

TEST(TlsInMemory, ReportsExactlyTheBytesThatWentOutWhateverBlocks) {
    World world;
    int blocked = 0;
    for (unsigned seed = 0; seed < 40; ++seed) {
        SCOPED_TRACE(seed);
        Dice dice{seed};
        Handshaken connection{world};
        auto const text = patterned(1 + dice.below(120000));
        std::size_t at = 0;
        std::size_t held = 0;  // must be offered again
        while (at < text.size()) {
            connection.pipe.room = dice.below(dice.one_of({2, 500, 20000, 60000}));
            // A random cut of what is left, in memory of its own, at least what was held back.
            auto const end = std::min(text.size(), at + std::max(held, 1 + dice.below(70000)));
            std::vector<std::string> copies;
            for (std::size_t begin = at; begin < end; begin += copies.back().size()) {
                copies.push_back(text.substr(
                    begin, std::min(end - begin, dice.one_of({0, 1, 9, 500, 16384, 40000}))));
            }
            std::vector<iovec> pieces;
            for (auto& copy : copies) {
                pieces.push_back({.iov_base = copy.data(), .iov_len = copy.size()});
            }
            auto const result = connection.stream->write(pieces);
            if (result.status == Status::would_block) {
                ++blocked;
            } else {
                ASSERT_EQ(result.status, Status::ok) << connection.stream->error_text();
            }
            ASSERT_LE(result.bytes, end - at);
            at += result.bytes;
            held = end - at;
            connection.server.exchange(connection.pipe);
            // A record that is reported is on the wire to its last byte, one that is not is not.
            ASSERT_EQ(connection.server.received.size(), at);
        }
        ASSERT_TRUE(connection.server.received == text);
    }
    EXPECT_GT(blocked, 100);
}

TEST(TlsInMemory, ReadsRightHoweverTheWireIsCut) {
    World world;
    for (unsigned seed = 0; seed < 40; ++seed) {
        SCOPED_TRACE(seed);
        Dice dice{seed};
        Handshaken connection{world};
        auto const text = patterned(1 + dice.below(100000));
        for (std::size_t at = 0; at < text.size();) {
            auto const size = std::min(text.size() - at, dice.one_of({1, 100, 5000, 16384}));
            connection.server.send(std::string_view{text}.substr(at, size));
            at += size;
        }
        connection.server.exchange(connection.pipe);
        auto const wire = std::exchange(connection.pipe.incoming, {});
        std::string got;
        for (std::size_t at = 0; at < wire.size();) {
            auto const size = 1 + dice.below(40000);
            connection.pipe.incoming += wire.substr(at, size);
            at += size;
            std::vector<char> buffer(dice.one_of({10, 1000, 16384, 70000}));
            for (;;) {
                auto const result = connection.stream->read(buffer);
                if (result.status == Status::would_block) break;
                ASSERT_EQ(result.status, Status::ok) << connection.stream->error_text();
                got.append(buffer.data(), result.bytes);
            }
        }
        ASSERT_TRUE(got == text);
    }
}

TEST(TlsInMemory, FillsTheBufferFromManyRecordsWithOneReadBelow) {
    World world;
    Handshaken connection{world};
    auto const text = patterned(1000);
    for (std::size_t at = 0; at < text.size(); at += 100)
        connection.server.send(text.substr(at, 100));
    connection.server.exchange(connection.pipe);
    connection.pipe.reads = 0;
    std::array<char, 4096> buffer{};
    auto const result = connection.stream->read(buffer);
    EXPECT_EQ(result.bytes, text.size());
    EXPECT_TRUE(std::string_view(buffer.data(), result.bytes) == text);
    EXPECT_EQ(connection.pipe.reads, 1);
}

TEST(TlsInMemory, WritesFullRecordsWithoutGaps) {
    World world;
    Handshaken connection{world};
    auto text = patterned(50000);
    std::vector<iovec> const pieces{{.iov_base = text.data(), .iov_len = 300},
                                    {.iov_base = text.data() + 300, .iov_len = 49000},
                                    {.iov_base = text.data() + 49300, .iov_len = 700}};
    EXPECT_EQ(connection.stream->write(pieces).bytes, text.size());
    connection.server.exchange(connection.pipe);
    EXPECT_TRUE(connection.server.received == text);
    EXPECT_EQ(connection.server.records, (std::vector<std::size_t>{16384, 16384, 16384, 848}));
}

TEST(TlsInMemory, AnswersAKeyUpdateAndWaitsForRoomToDoSo) {
    World world;
    Handshaken connection{world};
    std::array<char, 100> buffer{};
    (void)connection.stream->read(buffer);  // tickets
    ASSERT_EQ(::SSL_key_update(connection.server.native(), SSL_KEY_UPDATE_REQUESTED), 1);
    connection.server.send("after");
    connection.server.exchange(connection.pipe);
    connection.pipe.room = 0;
    auto const blocked = connection.stream->read(buffer);
    // Whether OpenSSL answers before or after it gives out the data is its own affair.
    connection.pipe.wants_write = connection.pipe.wants_read = false;
    if (blocked.status == Status::would_block) {
        connection.stream->want_read();
        EXPECT_TRUE(connection.pipe.wants_write);
    }
    connection.pipe.room = std::string::npos;
    auto const result = blocked.status == Status::ok ? blocked : connection.stream->read(buffer);
    EXPECT_EQ(std::string_view(buffer.data(), result.bytes), "after");
    std::string hello = "hello";
    iovec const piece{.iov_base = hello.data(), .iov_len = hello.size()};
    EXPECT_EQ(connection.stream->write({&piece, 1}).bytes, 5U);
    connection.server.exchange(connection.pipe);
    EXPECT_EQ(connection.server.received, "hello");
}

TEST(TlsInMemory, PassesOnWhyTheStreamBelowBroke) {
    World world;
    Handshaken connection{world};
    connection.pipe.broken = true;
    std::array<char, 100> buffer{};
    connection.pipe.incoming.clear();
    EXPECT_EQ(connection.stream->read(buffer).status, Status::error);
    EXPECT_EQ(connection.stream->error_text(), "broken on purpose");
}

TEST(TlsInMemory, StillReadsTheAnswerOfAPeerThatStoppedListening) {
    World world;
    Handshaken connection{world};
    connection.server.send("413 too large");
    connection.server.exchange(connection.pipe);
    connection.pipe.broken = true;
    std::string body = "body";
    iovec const piece{.iov_base = body.data(), .iov_len = body.size()};
    EXPECT_EQ(connection.stream->write({&piece, 1}).status, Status::error);
    std::array<char, 100> buffer{};
    auto const result = connection.stream->read(buffer);
    EXPECT_EQ(result.status, Status::ok);
    EXPECT_EQ(std::string_view(buffer.data(), result.bytes), "413 too large");
}

TEST(TlsInMemory, SurvivesGarbage) {
    World world;
    for (unsigned seed = 0; seed < 40; ++seed) {
        Dice dice{seed};
        Handshaken connection{world};
        std::string garbage(dice.below(300), '\0');
        for (auto& c : garbage) c = static_cast<char>(dice.below(256));
        connection.pipe.incoming += garbage;
        connection.pipe.ended = true;
        std::array<char, 1000> buffer{};
        EXPECT_EQ(connection.stream->read(buffer).status, Status::error);
        EXPECT_FALSE(connection.stream->error_text().empty());
    }
}

}  // namespace
}  // namespace tinkxx::net
