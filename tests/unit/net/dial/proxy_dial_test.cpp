#include "dialer_fixture.hpp"
#include "support/servers/script_server.hpp"
#include "support/sockets/certificates.hpp"

#include <tinkxx/error.hpp>

#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <array>
#include <future>

namespace tinkxx::net {
namespace {

using test::Certificates;
using test::ScriptServer;
using test::Wire;
using Status = IoResult::Status;

class ProxyDialTest : public DialerTest {
protected:
    static std::string url(ScriptServer const& proxy, std::string const& user = {}) {
        return "http://" + user + "127.0.0.1:" + std::to_string(proxy.port());
    }
    static NetOptions through(std::string url) {
        NetOptions options;
        options.proxy.url = std::move(url);
        return options;
    }
    void expect_no_secret(std::string const& message) {
        for (auto const* const secret : {"alice", "hunter2", "YWxpY2U6aHVudGVyMg==", "Basic"}) {
            EXPECT_EQ(message.find(secret), std::string::npos) << message;
        }
    }
};

TEST_F(ProxyDialTest, OpensATunnelForPlainHttpToo) {  // R-EXT-70
    std::promise<std::string> head;
    ScriptServer proxy{[&head](Wire& wire) {
        head.set_value(wire.receive_until("\r\n\r\n"));
        wire.send("HTTP/1.1 200 Connection established\r\n\r\n");
        echo(wire);
    }};
    Dialer dialer{loop_, through(url(proxy, "alice:hunter%32@"))};
    auto const dialled = dial(dialer, plain("origin.test", 8080));
    expect_echo(*dialled);
    EXPECT_EQ(head.get_future().get(),
              "CONNECT origin.test:8080 HTTP/1.1\r\n"
              "Host: origin.test:8080\r\n"
              "Proxy-Authorization: Basic YWxpY2U6aHVudGVyMg==\r\n\r\n");
}

TEST_F(ProxyDialTest, SendsGivenHeadersInPlaceOfCredentials) {  // R-EXT-70
    std::promise<std::string> head;
    ScriptServer proxy{[&head](Wire& wire) {
        head.set_value(wire.receive_until("\r\n\r\n"));
        wire.send("HTTP/1.1 200 OK\r\n\r\n");
        echo(wire);
    }};
    auto options = through(url(proxy, "alice:hunter2@"));
    options.proxy.headers = {{"X-Token", "t"}};
    Dialer dialer{loop_, options};
    expect_echo(*dial(dialer, plain("h", 80)));
    EXPECT_EQ(head.get_future().get(), "CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\nX-Token: t\r\n\r\n");
}

TEST_F(ProxyDialTest, KeepsBytesThatCameWithTheAnswer) {
    ScriptServer proxy{[](Wire& wire) {
        (void)wire.receive_until("\r\n\r\n");
        wire.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX: y\r\n\r\nearly ");
        wire.send(wire.receive_until("\n"));
        wire.drain();
    }};
    Dialer dialer{loop_, through(url(proxy))};
    auto const dialled = dial(dialer, plain("h", 80));
    ASSERT_NE(dialled->stream, nullptr) << dialled->message;
    await_readable(*dialled->stream);
    EXPECT_EQ(read(*dialled->stream, 6, 4).text, "early ");
    EXPECT_EQ(write(*dialled->stream, "late\n"), Status::ok);
    EXPECT_EQ(read(*dialled->stream, 5).text, "late\n");
}

TEST_F(ProxyDialTest, TakesTheAnswerInAnyPieces) {
    ScriptServer proxy{[](Wire& wire) {
        (void)wire.receive_until("\r\n\r\n");
        wire.send_in_pieces("HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n", 1);
        echo(wire);
    }};
    Dialer dialer{loop_, through(url(proxy))};
    expect_echo(*dial(dialer, plain("h", 80)));
}

TEST_F(ProxyDialTest, NamesTheProxyAndItsRefusalButNoCredentials) {  // R-CONF-12, R-ERR-04
    ScriptServer proxy{{[](Wire& wire) {
                            (void)wire.receive_until("\r\n\r\n");
                            wire.send("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
                            wire.drain();
                        },
                        [](Wire& wire) {
                            (void)wire.receive_until("\r\n\r\n");
                            wire.send("HTTP/1.1 403 not for Basic YWxpY2U6aHVudGVyMg==\r\n\r\n");
                            wire.drain();
                        }}};
    Dialer dialer{loop_, through(url(proxy, "alice:hunter2@"))};
    auto const unauthorized = dial(dialer, plain("origin.test", 80));
    EXPECT_EQ(unauthorized->failure, FailureKind::proxy);
    EXPECT_EQ(unauthorized->message,
              "the proxy http://127.0.0.1:" + std::to_string(proxy.port()) +
                  ": it refused CONNECT to origin.test:80: 407 Proxy Authentication Required; "
                  "give user and password in NetOptions::proxy.url, or proxy.headers");
    expect_no_secret(unauthorized->message);
    auto const forbidden = dial(dialer, plain("origin.test", 80));
    EXPECT_EQ(forbidden->failure, FailureKind::proxy);
    EXPECT_NE(forbidden->message.find("403"), std::string::npos);
    expect_no_secret(forbidden->message);
}

TEST_F(ProxyDialTest, NamesAProxyThatCannotBeUsed) {  // R-CONF-12, R-ERR-04
    auto const closed = bind_to("127.0.0.1", 0);
    ScriptServer proxy{{[](Wire& wire) {
                            (void)wire.receive_until("\r\n\r\n");
                            wire.finish();
                            wire.drain();
                        },
                        [](Wire& wire) {
                            (void)wire.receive_until("\r\n\r\n");
                            wire.send("SSH-2.0-OpenSSH_9.2\r\n");
                            wire.drain();
                        },
                        [](Wire& wire) {
                            (void)wire.receive_until("\r\n\r\n");
                            wire.send("HTTP/1.1 200 OK\r\nX: " + std::string(20000, 'x'));
                            wire.drain();
                        }}};
    Dialer dialer{loop_, through(url(proxy, "alice:hunter2@"))};
    for (auto const* const why :
         {"without an answer to CONNECT", "its answer is not HTTP", "too long a head"}) {
        auto const dialled = dial(dialer, plain("h", 80));
        EXPECT_EQ(dialled->failure, FailureKind::proxy);
        EXPECT_NE(dialled->message.find(why), std::string::npos) << dialled->message;
        expect_no_secret(dialled->message);
    }
    for (auto const& address : {"127.0.0.1:" + std::to_string(test::port_of(closed)),
                                std::string(70, 'x') + ".invalid"}) {
        Dialer away{loop_, through("http://alice:hunter2@" + address)};
        auto const dialled = dial(away, plain("h", 80));
        EXPECT_EQ(dialled->failure, FailureKind::proxy);
        EXPECT_NE(dialled->message.find(address), std::string::npos) << dialled->message;
        expect_no_secret(dialled->message);
    }
}

TEST_F(ProxyDialTest, GoesAroundTheProxyWhereToldTo) {
    ScriptServer server{echo};
    ScriptServer proxy{[](Wire& wire) { wire.close(); }};
    auto options = through(url(proxy));
    options.proxy.no_proxy = "direct.test";
    options.resolve["a.direct.test"] = {"127.0.0.1"};
    Dialer dialer{loop_, options};
    expect_echo(*dial(dialer, plain("a.direct.test", server.port())));
    EXPECT_EQ(proxy.connections(), 0);
    EXPECT_EQ(dial(dialer, plain("other.test", server.port()))->failure, FailureKind::proxy);
}

TEST_F(ProxyDialTest, RefusesBadOptions) {  // R-CONF-07
    auto const field_of = [this](NetOptions const& options) -> std::string {
        try {
            Dialer const dialer{loop_, options};
        } catch (ValidationError const& error) {
            return std::string{error.field()};
        }
        return "none";
    };
    EXPECT_EQ(field_of(through("ftp://p")), "proxy.url");
    EXPECT_EQ(field_of(through("http://p:0")), "proxy.url");
    auto options = through("http://p");
    options.proxy.headers = {{"X", "a\r\nb"}};
    EXPECT_EQ(field_of(options), "proxy.headers");
}

/// A TLS server at the far end of a byte stream that `Wire` carries.
class InnerTls {
public:
    InnerTls(SSL_CTX* context, Wire& wire) : wire_{wire}, ssl_{SSL_new(context), &SSL_free} {
        ::SSL_set_bio(ssl_.get(), ::BIO_new(::BIO_s_mem()), ::BIO_new(::BIO_s_mem()));
        ::SSL_set_accept_state(ssl_.get());
        while (::SSL_do_handshake(ssl_.get()) != 1) exchange();
        flush();
    }
    void echo() {
        std::array<char, 20000> buffer;
        for (;;) {
            auto const got = ::SSL_read(ssl_.get(), buffer.data(), buffer.size());
            if (got > 0) {
                ::SSL_write(ssl_.get(), buffer.data(), got);
                flush();
            } else {
                exchange();
            }
        }
    }

private:
    void flush() {
        std::array<char, 20000> buffer;
        for (int got = 0;
             (got = ::BIO_read(::SSL_get_wbio(ssl_.get()), buffer.data(), buffer.size())) > 0;) {
            wire_.send({buffer.data(), static_cast<std::size_t>(got)});
        }
    }
    void exchange() {
        flush();
        auto const bytes = wire_.receive_some();
        if (bytes.empty()) throw test::PeerGone{"end"};
        ::BIO_write(::SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
    }

    Wire& wire_;
    test::SslHandle ssl_;
};

TEST_F(ProxyDialTest, CarriesTlsThroughAnHttpsProxy) {  // R-EXT-70
    Certificates certificates;
    auto const proxy_files = certificates.issue_for_loopback();
    auto const origin_files = certificates.issue({.dns_names = {"origin.test"}});
    auto const origin_context = test::make_tls_server(
        {.certificate_file = origin_files.certificate_file, .key_file = origin_files.key_file});
    ScriptServer proxy{
        [&](Wire& wire) {
            (void)wire.receive_until("\r\n\r\n");
            wire.send("HTTP/1.1 200 OK\r\n\r\n");
            InnerTls{origin_context.get(), wire}.echo();
        },
        {.tls = test::make_tls_server({.certificate_file = proxy_files.certificate_file,
                                       .key_file = proxy_files.key_file})}};
    auto options = through("https://alice:hunter2@localhost:" + std::to_string(proxy.port()));
    options.tls.ca_file = certificates.ca_file();
    Dialer dialer{loop_, options};
    Origin const origin{.tls = true, .host = "origin.test", .port = 443};
    auto const dialled = dial(dialer, origin);
    ASSERT_NE(dialled->stream, nullptr) << dialled->message;
    EXPECT_EQ(dialled->stream->alpn(), "h2");
    std::string text(std::size_t{1024} * 1024, '\0');
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 13 % 251);
    std::string got;
    for (std::size_t at = 0; at < text.size(); at += 65536) {
        EXPECT_EQ(write(*dialled->stream, std::string_view{text}.substr(at, 65536)), Status::ok);
        got += read(*dialled->stream, 65536, 5000).text;
    }
    EXPECT_TRUE(got == text);

    // A certificate for another name is refused inside the tunnel, too, and the message says so.
    auto const wrong = dial(dialer, {.tls = true, .host = "wrong.test", .port = 443});
    EXPECT_EQ(wrong->failure, FailureKind::tls);
    EXPECT_NE(wrong->message.find("the certificate is for origin.test; asked for wrong.test"),
              std::string::npos)
        << wrong->message;
    EXPECT_NE(wrong->message.find("through the proxy https://localhost:"), std::string::npos);
    expect_no_secret(wrong->message);
}

TEST_F(ProxyDialTest, VerifiesAnHttpsProxy) {
    Certificates certificates;
    auto const files = certificates.issue({.dns_names = {"other.test"}});
    ScriptServer proxy{[](Wire& wire) { wire.drain(); },
                       {.tls = test::make_tls_server({.certificate_file = files.certificate_file,
                                                      .key_file = files.key_file})}};
    auto options = through("https://alice:hunter2@localhost:" + std::to_string(proxy.port()));
    options.tls.ca_file = certificates.ca_file();
    Dialer dialer{loop_, options};
    auto const dialled = dial(dialer, plain("h", 80));
    EXPECT_EQ(dialled->failure, FailureKind::proxy);
    EXPECT_NE(dialled->message.find("the certificate is for other.test; asked for localhost"),
              std::string::npos)
        << dialled->message;
    expect_no_secret(dialled->message);
}

}  // namespace
}  // namespace tinkxx::net
