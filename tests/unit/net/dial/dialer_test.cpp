#include "net/dial/dialer.hpp"

#include "dialer_fixture.hpp"
#include "support/servers/script_server.hpp"
#include "support/sockets/certificates.hpp"

#include <tinkxx/error.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <future>

namespace tinkxx::net {
namespace {

using test::Certificates;
using test::Fd;
using test::Gate;
using test::ScriptServer;
using test::Wire;
using Status = IoResult::Status;
using namespace std::chrono_literals;

TEST_F(DialerTest, ConnectsToAnAddress) {
    ScriptServer server{echo};
    Dialer dialer{loop_, {}};
    auto const dialled = dial(dialer, plain("127.0.0.1", server.port()));
    expect_echo(*dialled);
    EXPECT_EQ(dialled->stream->peer(), "127.0.0.1:" + std::to_string(server.port()));
    EXPECT_EQ(dialled->stream->alpn(), "");
}

TEST_F(DialerTest, ConnectsOverIpv6) {
    try {
        ScriptServer server{echo, {.family = test::Family::ipv6}};
        Dialer dialer{loop_, {}};
        auto const dialled = dial(dialer, plain("::1", server.port()));
        expect_echo(*dialled);
        EXPECT_EQ(dialled->stream->peer(), "[::1]:" + std::to_string(server.port()));
    } catch (std::system_error const& error) {
        GTEST_SKIP() << "no IPv6 here: " << error.what();
    }
}

TEST_F(DialerTest, LooksNamesUp) {
    ScriptServer server{echo};
    Dialer dialer{loop_, {}};
    expect_echo(*dial(dialer, plain("localhost", server.port())));
}

TEST_F(DialerTest, SharesALookUpAmongThoseWhoAskAtOnce) {
    ScriptServer server{echo};
    Dialer dialer{loop_, {}};
    std::array<Dialled, 20> many;
    for (auto& one : many) {
        start(dialer, plain("localhost", server.port()), HttpVersion::http1, one);
    }
    many[0].dial.reset();
    many[10].dial.reset();
    EXPECT_TRUE(run_until([&] {
        return std::count_if(many.begin(), many.end(),
                             [](Dialled const& one) { return one.done(); }) == 18;
    }));
    for (std::size_t i = 0; i < many.size(); ++i) {
        EXPECT_EQ(many[i].stream != nullptr, i != 0 && i != 10) << i << many[i].message;
    }
}

TEST_F(DialerTest, PrefersTheGivenAddresses) {
    ScriptServer server{echo};
    NetOptions options;
    options.resolve["Some.Name"] = {"127.0.0.1"};
    Dialer dialer{loop_, options};
    expect_echo(*dial(dialer, plain("some.name", server.port())));
}

TEST_F(DialerTest, SaysWhichNameCannotBeResolved) {
    Dialer dialer{loop_, {}};
    // Longer than a label may be: refused without asking the network.
    auto const dialled = dial(dialer, plain(std::string(70, 'x') + ".invalid", 80));
    EXPECT_EQ(dialled->failure, FailureKind::resolve);
    EXPECT_NE(dialled->message.find("cannot resolve 'xxx"), std::string::npos) << dialled->message;
    EXPECT_NE(dialled->message.find("DNS"), std::string::npos) << dialled->message;
}

TEST_F(DialerTest, AnUnknownNameIsAskedForTwiceAndThenGivenUp) {
    std::atomic<int> asked{0};
    Dialer dialer{loop_, {}, [&](std::string const&) {
                      ++asked;
                      return Resolver::Answer{.error = "nobody knows it", .unknown = true};
                  }};
    auto const dialled = dial(dialer, plain("h", 80));
    EXPECT_EQ(dialled->failure, FailureKind::resolve);
    EXPECT_EQ(asked, 2);
    EXPECT_TRUE(dialled->permanent) << dialled->message;
}

TEST_F(DialerTest, ANameThatIsFoundTheSecondTimeIsUsed) {
    ScriptServer server{echo};
    std::atomic<int> asked{0};
    Dialer dialer{loop_, {}, [&](std::string const&) {
                      if (++asked == 1) return Resolver::Answer{.error = "no", .unknown = true};
                      return Resolver::Answer{.addresses = {*IpAddress::parse("127.0.0.1")}};
                  }};
    expect_echo(*dial(dialer, plain("h", server.port())));
}

TEST_F(DialerTest, AnOutageOfDnsCanHeal) {
    std::atomic<int> asked{0};
    Dialer silent{loop_, {}, [&](std::string const&) {
                      ++asked;
                      return Resolver::Answer{.error = "nobody answers"};
                  }};
    auto const dialled = dial(silent, plain("h", 80));
    EXPECT_EQ(dialled->failure, FailureKind::resolve);
    EXPECT_EQ(asked, 1);
    EXPECT_FALSE(dialled->permanent) << dialled->message;
}

TEST_F(DialerTest, ANameThatWasKnownOnceMayComeBack) {
    ScriptServer server{echo};
    std::atomic<bool> known{true};
    Dialer dialer{loop_, {}, [&](std::string const&) {
                      if (known) {
                          return Resolver::Answer{.addresses = {*IpAddress::parse("127.0.0.1")}};
                      }
                      return Resolver::Answer{.error = "nobody knows it", .unknown = true};
                  }};
    expect_echo(*dial(dialer, plain("h", server.port())));
    known = false;
    auto const dialled = dial(dialer, plain("h", server.port()));
    EXPECT_EQ(dialled->failure, FailureKind::resolve);
    EXPECT_FALSE(dialled->permanent) << dialled->message;
}

TEST_F(DialerTest, ANameThatNobodyCanHaveNeedsNoNetwork) {  // RFC 6761, 6.4
    Dialer dialer{loop_, {}};
    auto const dialled = dial(dialer, plain("no-such-host.invalid", 80));
    EXPECT_EQ(dialled->failure, FailureKind::resolve);
    EXPECT_TRUE(dialled->permanent) << dialled->message;
}

TEST_F(DialerTest, ARefusedConnectionCanHeal) {
    Dialer dialer{loop_, {}};
    auto const dialled = dial(dialer, plain("127.0.0.1", test::free_port()));
    EXPECT_EQ(dialled->failure, FailureKind::connect);
    EXPECT_FALSE(dialled->permanent);
}

TEST_F(DialerTest, SaysWhenANameWasGivenNoAddress) {
    NetOptions options;
    options.resolve["h"] = {};
    Dialer dialer{loop_, options};
    auto const dialled = dial(dialer, plain("h", 80));  // checks that it is not told inside
    EXPECT_EQ(dialled->failure, FailureKind::resolve);
    EXPECT_EQ(dialled->message, "NetOptions::resolve has no address for 'h'");
}

TEST_F(DialerTest, RefusesAddressesThatAreNone) {
    NetOptions options;
    options.resolve["h"] = {"127.0.0.1", "example.com"};
    try {
        Dialer const dialer{loop_, options};
        FAIL();
    } catch (ValidationError const& error) {
        EXPECT_EQ(error.field(), "resolve");
        EXPECT_EQ(error.value(), "example.com");
    }
}

TEST_F(DialerTest, NamesTheAddressThatRefuses) {
    auto const closed = bind_to("127.0.0.1", 0);
    auto const port = test::port_of(closed);
    Dialer dialer{loop_, {}};
    auto const dialled = dial(dialer, plain("127.0.0.1", port));
    EXPECT_EQ(dialled->failure, FailureKind::connect);
    EXPECT_EQ(dialled->message,
              "cannot connect to 127.0.0.1:" + std::to_string(port) + ": connection refused");
}

TEST_F(DialerTest, ListsEveryAddressThatFailedFamiliesInTurn) {
    auto const closed = bind_to("0.0.0.0", 0);
    NetOptions options;
    options.resolve["h"] = {"127.0.0.2", "127.0.0.3", "::1"};
    Dialer dialer{loop_, options};
    auto const dialled = dial(dialer, plain("h", test::port_of(closed)));
    EXPECT_EQ(dialled->failure, FailureKind::connect);
    auto const& message = dialled->message;
    auto const first = message.find("127.0.0.2: connection refused");
    auto const second = message.find("::1: ");
    auto const third = message.find("127.0.0.3: connection refused");
    EXPECT_NE(first, std::string::npos) << message;
    EXPECT_NE(third, std::string::npos) << message;
    EXPECT_LT(first, second) << message;
    EXPECT_LT(second, third) << message;
}

TEST_F(DialerTest, KeepsTheListOfFailuresShort) {
    auto const closed = bind_to("0.0.0.0", 0);
    NetOptions options;
    for (int i = 2; i < 30; ++i) options.resolve["h"].push_back("127.0.0." + std::to_string(i));
    Dialer dialer{loop_, options};
    auto const dialled = dial(dialer, plain("h", test::port_of(closed)));
    EXPECT_NE(dialled->message.find("; and 22 more"), std::string::npos) << dialled->message;
}

TEST_F(DialerTest, TriesTheNextAddressAtOnceWhenOneFails) {
    ScriptServer server{echo};
    auto const closed = bind_to("127.0.0.2", server.port());
    NetOptions options;
    options.resolve["h"] = {"127.0.0.2", "127.0.0.1"};
    options.connection_attempt_delay = 10h;  // the test would not live to see it
    Dialer dialer{loop_, options};
    expect_echo(*dial(dialer, plain("h", server.port())));
}

TEST_F(DialerTest, GivesASilentAddressOnlyAHeadStart) {
    ScriptServer server{echo};
    // A full queue of a server that does not accept: the next connection hangs.
    auto const full = bind_to("127.0.0.2", server.port(), 0);
    std::vector<Fd> queued;
    for (int i = 0; i < 4; ++i) {
        queued.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        sockaddr_in where{};
        where.sin_family = AF_INET;
        where.sin_port = htons(server.port());
        ::inet_pton(AF_INET, "127.0.0.2", &where.sin_addr);
        (void)::connect(queued.back().get(), reinterpret_cast<sockaddr const*>(&where),
                        sizeof where);
    }
    NetOptions options;
    options.resolve["h"] = {"127.0.0.2", "127.0.0.1"};
    options.connection_attempt_delay = 5ms;
    Dialer dialer{loop_, options};
    auto const dialled = dial(dialer, plain("h", server.port()));
    expect_echo(*dialled);
    EXPECT_EQ(dialled->stream->peer(), "127.0.0.1:" + std::to_string(server.port()));
}

TEST_F(DialerTest, MayBeAbandonedAtAnyMoment) {
    Certificates certificates;
    auto const files = certificates.issue_for_loopback();
    ScriptServer server{echo,
                        {.tls = test::make_tls_server({.certificate_file = files.certificate_file,
                                                       .key_file = files.key_file})}};
    NetOptions options;
    options.tls.ca_file = certificates.ca_file();
    // After 0, 1, 2 … turns of the loop, until one attempt gets through.
    bool through = false;
    for (int turns = 0; turns < 1000 && !through; ++turns) {
        Dialled dialled;
        {
            Dialer dialer{loop_, options};
            start(dialer, {.tls = true, .host = "localhost", .port = server.port()},
                  HttpVersion::automatic, dialled);
            for (int i = 0; i < turns && !dialled.done(); ++i) loop_.turn(1s);
            through = dialled.done();
            dialled.dial.reset();
        }
        auto const told = dialled.done();
        for (int i = 0; i < 3; ++i) loop_.turn(0s);
        EXPECT_EQ(dialled.done(), told) << "told after it was abandoned";
    }
    EXPECT_TRUE(through);
}

TEST_F(DialerTest, MayBeDestroyedInsideItsCallbacks) {
    ScriptServer server{echo};
    auto const closed = bind_to("127.0.0.2", server.port());
    Dialer dialer{loop_, {}};
    for (auto const* const host : {"127.0.0.1", "127.0.0.2", "localhost"}) {
        Dialled dialled;
        dialled.keep_dial = false;
        start(dialer, plain(host, server.port()), HttpVersion::http1, dialled);
        EXPECT_TRUE(run_until([&] { return dialled.done(); }));
        EXPECT_EQ(dialled.dial, nullptr);
    }
}

TEST_F(DialerTest, MayGoWhileANameIsLookedUp) {
    for (int i = 0; i < 20; ++i) {
        Dialled dialled;
        {
            Dialer dialer{loop_, {}};
            start(dialer, plain("localhost", 1), HttpVersion::http1, dialled);
            dialled.dial.reset();
        }
        loop_.turn(0s);
        EXPECT_FALSE(dialled.done());
    }
}

TEST_F(DialerTest, ReportsAResetAndAnOrderlyEnd) {
    ScriptServer server{{[](Wire& wire) {
                             wire.send("bye");
                             wire.finish();
                             wire.drain();
                         },
                         [](Wire& wire) {
                             (void)wire.receive(1);
                             wire.reset();
                         }}};
    Dialer dialer{loop_, {}};
    auto const orderly = dial(dialer, plain("127.0.0.1", server.port()));
    ASSERT_NE(orderly->stream, nullptr);
    auto const end = read_all(*orderly->stream);
    EXPECT_EQ(end.text, "bye");
    EXPECT_EQ(end.status, Status::closed);

    auto const reset = dial(dialer, plain("127.0.0.1", server.port()));
    ASSERT_NE(reset->stream, nullptr);
    EXPECT_EQ(write(*reset->stream, "x"), Status::ok);
    EXPECT_EQ(read_all(*reset->stream).status, Status::error);
    EXPECT_EQ(reset->stream->error_text(), "connection reset by peer");
    // No SIGPIPE, which would end the test.
    EXPECT_EQ(write(*reset->stream, "x"), Status::error);
    EXPECT_EQ(reset->stream->error_text(), "broken pipe");
}

TEST_F(DialerTest, WritesManyPiecesInOrderAgainstBackPressure) {
    std::string text(std::size_t{8} * 1024 * 1024, '\0');
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 % 251);
    Gate go;
    std::promise<bool> same;
    ScriptServer server{[&](Wire& wire) {
        wire.wait(go);
        same.set_value(wire.receive(text.size()) == text);
        wire.drain();
    }};
    Dialer dialer{loop_, {}};
    auto const dialled = dial(dialer, plain("127.0.0.1", server.port()));
    ASSERT_NE(dialled->stream, nullptr);
    int blocked = 0;
    for (std::size_t at = 0; at < text.size();) {
        std::vector<iovec> pieces;  // more than one call may take
        for (std::size_t i = at; i < text.size() && pieces.size() < 3000; i += 4000) {
            pieces.push_back({.iov_base = text.data() + i,
                              .iov_len = std::min<std::size_t>(4000, text.size() - i)});
        }
        auto const result = dialled->stream->write(pieces);
        if (result.status == Status::would_block) {
            if (++blocked == 1) go.open();
            await_writable(*dialled->stream);
        } else {
            ASSERT_EQ(result.status, Status::ok);
            at += result.bytes;
        }
    }
    EXPECT_GT(blocked, 0);
    EXPECT_TRUE(same.get_future().get());
}

TEST_F(DialerTest, TellsOncePerWish) {
    ScriptServer server{[](Wire& wire) {
        wire.send("x");
        wire.drain();
    }};
    Dialer dialer{loop_, {}};
    auto const dialled = dial(dialer, plain("127.0.0.1", server.port()));
    ASSERT_NE(dialled->stream, nullptr);
    Ear ear;
    dialled->stream->set_owner(&ear);
    dialled->stream->want_read();
    dialled->stream->want_read();
    EXPECT_TRUE(run_until([&] { return ear.readable > 0; }));
    dialled->stream->want_write();
    EXPECT_TRUE(run_until([&] { return ear.writable > 0; }));
    EXPECT_EQ(ear.readable, 1);
    // Still readable, and said so again when asked again.
    dialled->stream->want_read();
    EXPECT_TRUE(run_until([&] { return ear.readable > 1; }));
}

TEST_F(DialerTest, NeedsH2WhenHttp2IsDemanded) {
    Certificates certificates;
    auto const files = certificates.issue_for_loopback();
    NetOptions options;
    options.tls.ca_file = certificates.ca_file();
    Dialer dialer{loop_, options};
    for (std::string const alpn : {"http/1.1", ""}) {
        ScriptServer server{
            echo,
            {.tls = test::make_tls_server({.certificate_file = files.certificate_file,
                                           .key_file = files.key_file,
                                           .alpn = alpn})}};
        Origin const origin{.tls = true, .host = "localhost", .port = server.port()};
        auto const refused = dial(dialer, origin, HttpVersion::http2);
        EXPECT_EQ(refused->failure, FailureKind::tls) << alpn;
        EXPECT_NE(refused->message.find("HTTP/2"), std::string::npos) << refused->message;
        auto const any = dial(dialer, origin, HttpVersion::automatic);
        ASSERT_NE(any->stream, nullptr) << any->message;
        EXPECT_EQ(any->stream->alpn(), alpn);
    }
    ScriptServer server{echo,
                        {.tls = test::make_tls_server({.certificate_file = files.certificate_file,
                                                       .key_file = files.key_file})}};
    Origin const origin{.tls = true, .host = "localhost", .port = server.port()};
    EXPECT_EQ(dial(dialer, origin, HttpVersion::http2)->stream->alpn(), "h2");
    EXPECT_EQ(dial(dialer, origin, HttpVersion::http1)->stream->alpn(), "http/1.1");
}

}  // namespace
}  // namespace tinkxx::net
