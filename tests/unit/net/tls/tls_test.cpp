#include "net/tls/tls.hpp"

#include "support/servers/script_server.hpp"
#include "support/sockets/certificates.hpp"
#include "unit/net/dial/dial_fixture.hpp"

#include <tinkxx/error.hpp>

#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <sys/socket.h>

#include <algorithm>
#include <future>

namespace tinkxx::net {
namespace {

using test::CertificateFiles;
using test::Certificates;
using test::CertificateSpec;
using test::Gate;
using test::ScriptServer;
using test::Wire;
using Status = IoResult::Status;

/// Bytes whose place can be told from their value.
std::string patterned(std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>((i * 131 + i / 251) % 253);
    return text;
}

class Tls : public DialTest {
protected:
    static std::shared_ptr<SSL_CTX> server_context(CertificateFiles const& files,
                                                   std::string const& client_ca = {},
                                                   std::string const& alpn = "h2,http/1.1") {
        return test::make_tls_server({.certificate_file = files.certificate_file,
                                      .key_file = files.key_file,
                                      .client_ca_file = client_ca,
                                      .alpn = alpn});
    }
    std::shared_ptr<SSL_CTX> server_context() {
        return server_context(certificates_.issue_for_loopback());
    }
    /// Every name leads to the loopback; our authority is trusted.
    NetOptions options() {
        NetOptions options;
        options.tls.ca_file = certificates_.ca_file();
        options.resolve["localhost"] = {"127.0.0.1"};
        options.resolve["other.test"] = {"127.0.0.1"};
        return options;
    }
    static Origin origin(ScriptServer const& server, std::string host = "localhost") {
        return {.tls = true, .host = std::move(host), .port = server.port()};
    }
    /// The message of a handshake with a server that shows `files`.
    std::string refusal(CertificateFiles const& files, std::string const& host = "localhost") {
        ScriptServer server{[](Wire& wire) { wire.drain(); }, {.tls = server_context(files)}};
        Dialer dialer{loop_, options()};
        auto const dialled = dial(dialer, origin(server, host));
        EXPECT_EQ(dialled->failure, FailureKind::tls);
        EXPECT_TRUE(dialled->permanent) << "a certificate does not mend itself";
        return dialled->message;
    }

    Certificates certificates_;
};

TEST_F(Tls, ExchangesBytesWithAVerifiedPeer) {
    ScriptServer server{[](Wire& wire) {
                            wire.send("hello " + wire.receive(5));
                            wire.drain();
                        },
                        {.tls = server_context()}};
    Dialer dialer{loop_, options()};
    auto const dialled = dial(dialer, origin(server));
    ASSERT_NE(dialled->stream, nullptr) << dialled->message;
    auto& stream = *dialled->stream;
    EXPECT_EQ(stream.alpn(), "h2");
    EXPECT_FALSE(stream.resumed());
    EXPECT_EQ(stream.peer(), "127.0.0.1:" + std::to_string(server.port()));
    EXPECT_EQ(write(stream, "world"), Status::ok);
    EXPECT_EQ(read(stream, 11).text, "hello world");
}

TEST_F(Tls, VerifiesAddressesAndSendsThemNoServerName) {
    std::promise<std::string> name;
    ScriptServer server{[&name](Wire& wire) {
                            auto const* const sni =
                                ::SSL_get_servername(wire.tls(), TLSEXT_NAMETYPE_host_name);
                            name.set_value(sni == nullptr ? "none" : sni);
                            wire.drain();
                        },
                        {.tls = server_context()}};
    Dialer dialer{loop_, options()};
    auto const dialled = dial(dialer, origin(server, "127.0.0.1"));
    ASSERT_NE(dialled->stream, nullptr) << dialled->message;
    EXPECT_EQ(name.get_future().get(), "none");
}

TEST_F(Tls, SendsTheServerName) {
    std::promise<std::string> name;
    ScriptServer server{[&name](Wire& wire) {
                            auto const* const sni =
                                ::SSL_get_servername(wire.tls(), TLSEXT_NAMETYPE_host_name);
                            name.set_value(sni == nullptr ? "none" : sni);
                            wire.drain();
                        },
                        {.tls = server_context()}};
    Dialer dialer{loop_, options()};
    auto const dialled = dial(dialer, origin(server));
    ASSERT_NE(dialled->stream, nullptr) << dialled->message;
    EXPECT_EQ(name.get_future().get(), "localhost");
}

TEST_F(Tls, JoinsSmallPiecesIntoOneRecord) {
    std::promise<std::size_t> first_record;
    ScriptServer server{[&first_record](Wire& wire) {
                            // SSL_read gives at most one record.
                            first_record.set_value(wire.receive_some().size());
                            wire.drain();
                        },
                        {.tls = server_context()}};
    Dialer dialer{loop_, options()};
    auto const dialled = dial(dialer, origin(server));
    ASSERT_NE(dialled->stream, nullptr) << dialled->message;
    auto text = patterned(1000);
    std::vector<iovec> pieces;
    for (std::size_t i = 0; i < text.size(); i += 10) {
        pieces.push_back({.iov_base = text.data() + i, .iov_len = 10});
        pieces.push_back({.iov_base = nullptr, .iov_len = 0});
    }
    auto const result = dialled->stream->write(pieces);
    EXPECT_EQ(result.status, Status::ok);
    EXPECT_EQ(result.bytes, 1000U);
    EXPECT_EQ(first_record.get_future().get(), 1000U);
}

TEST_F(Tls, KeepsEveryByteInOrderAgainstBackPressure) {
    auto text = patterned(std::size_t{8} * 1024 * 1024);
    Gate go;
    std::promise<bool> same;
    ScriptServer server{[&](Wire& wire) {
                            wire.wait(go);
                            same.set_value(wire.receive(text.size()) == text);
                            wire.drain();
                        },
                        {.tls = server_context()}};
    Dialer dialer{loop_, options()};
    auto const dialled = dial(dialer, origin(server));
    ASSERT_NE(dialled->stream, nullptr) << dialled->message;
    auto& stream = *dialled->stream;

    // Pieces from nothing to several records; the retry comes from other memory each time.
    std::size_t at = 0;
    int blocked = 0;
    while (at < text.size()) {
        std::vector<std::string> copies;
        std::size_t end = at;
        for (std::size_t i = 0; i < 6; ++i) {
            constexpr std::array<std::size_t, 5> sizes{1, 40000, 0, 700, 16384};
            // The same bytes must be offered after a block, so sizes depend on the place only.
            auto const size = std::min(sizes[(end + i) % sizes.size()] + 30000 * (i == 5 ? 1U : 0U),
                                       text.size() - end);
            copies.push_back(text.substr(end, size));
            end += size;
        }
        if (end < std::min(at + 20000, text.size())) {
            copies.push_back(text.substr(end, std::min<std::size_t>(20000, text.size() - end)));
        }
        std::vector<iovec> pieces;
        for (auto& copy : copies) {
            pieces.push_back({.iov_base = copy.data(), .iov_len = copy.size()});
        }
        auto const result = stream.write(pieces);
        if (result.status == Status::would_block) {
            if (++blocked == 1) go.open();
            await_writable(stream);
            ASSERT_FALSE(HasFailure());
        } else {
            ASSERT_EQ(result.status, Status::ok) << stream.error_text();
            at += result.bytes;
        }
    }
    EXPECT_GT(blocked, 0);
    EXPECT_TRUE(same.get_future().get());
}

TEST_F(Tls, RefusesAnUnfinishedWriteThatIsNotRepeated) {
    auto text = patterned(std::size_t{16} * 1024 * 1024);
    ScriptServer server{[](Wire& wire) { wire.stall(); }, {.tls = server_context()}};
    Dialer dialer{loop_, options()};
    auto const dialled = dial(dialer, origin(server));
    ASSERT_NE(dialled->stream, nullptr) << dialled->message;
    iovec piece{.iov_base = text.data(), .iov_len = text.size()};
    ASSERT_EQ(dialled->stream->write({&piece, 1}).status, Status::ok);
    ASSERT_EQ(dialled->stream->write({&piece, 1}).status, Status::would_block);
    piece.iov_len = 10;
    EXPECT_EQ(dialled->stream->write({&piece, 1}).status, Status::error);
    EXPECT_FALSE(dialled->stream->error_text().empty());
}

TEST_F(Tls, TellsOfDataThatOpensslHoldsThoughTheSocketIsSilent) {
    auto const text = patterned(30000);
    ScriptServer server{[&](Wire& wire) {
                            wire.send(text);
                            wire.stall();
                        },
                        {.tls = server_context()}};
    Dialer dialer{loop_, options()};
    auto const dialled = dial(dialer, origin(server));
    ASSERT_NE(dialled->stream, nullptr) << dialled->message;
    // A byte at a time, with a wait before each: every byte after the first few is in memory.
    std::string got;
    std::array<char, 1> byte{};
    while (got.size() < 300) {
        await_readable(*dialled->stream);
        ASSERT_FALSE(HasFailure());
        if (dialled->stream->read(byte).status == Status::ok) got += byte[0];
    }
    EXPECT_TRUE(got == text.substr(0, 300));
    EXPECT_TRUE(read(*dialled->stream, text.size() - 300, 777).text == text.substr(300));
}

TEST_F(Tls, TellsAnOrderlyEndFromACutOne) {
    ScriptServer server{{[](Wire& wire) {
                             wire.send("all");
                             wire.finish();
                             wire.drain();
                         },
                         [](Wire& wire) {
                             wire.send("part");
                             ::shutdown(::SSL_get_fd(wire.tls()), SHUT_WR);
                             wire.drain();
                         }},
                        {.tls = server_context()}};
    Dialer dialer{loop_, options()};
    auto const orderly = dial(dialer, origin(server));
    ASSERT_NE(orderly->stream, nullptr) << orderly->message;
    auto const whole = read_all(*orderly->stream);
    EXPECT_EQ(whole.text, "all");
    EXPECT_EQ(whole.status, Status::closed);

    auto const cut = dial(dialer, origin(server));
    ASSERT_NE(cut->stream, nullptr) << cut->message;
    auto const part = read_all(*cut->stream);
    EXPECT_EQ(part.text, "part");
    EXPECT_EQ(part.status, Status::error);
    EXPECT_EQ(cut->stream->error_text(), "connection closed without TLS close_notify");
    EXPECT_EQ(cut->stream->read({}).status, Status::error);
}

TEST_F(Tls, TellsOfACloseNotifyThatCameWithTheData) {
    Gate sent;
    ScriptServer server{[&](Wire& wire) {
                            // Data and close_notify, but the socket stays open and silent.
                            wire.send("bye");
                            ::SSL_shutdown(wire.tls());
                            sent.open();
                            wire.stall();
                        },
                        {.tls = server_context()}};
    Dialer dialer{loop_, options()};
    auto const dialled = dial(dialer, origin(server));
    ASSERT_NE(dialled->stream, nullptr) << dialled->message;
    ASSERT_TRUE(sent.wait_until_open());
    await_readable(*dialled->stream);
    std::array<char, 100> buffer{};
    EXPECT_EQ(dialled->stream->read(buffer).bytes, 3U);
    await_readable(*dialled->stream);
    EXPECT_EQ(dialled->stream->read(buffer).status, Status::closed);
}

TEST_F(Tls, SendsACloseNotifyWhenDestroyed) {
    std::promise<bool> orderly;
    ScriptServer server{[&](Wire& wire) { orderly.set_value(wire.receive_some().empty()); },
                        {.tls = server_context()}};
    Dialer dialer{loop_, options()};
    auto const dialled = dial(dialer, origin(server));
    ASSERT_NE(dialled->stream, nullptr) << dialled->message;
    dialled->stream.reset();
    EXPECT_TRUE(orderly.get_future().get());
}

TEST_F(Tls, ReportsAWriteToAPeerThatIsGoneWithoutASignal) {
    ScriptServer server{[](Wire& wire) { wire.reset(); }, {.tls = server_context()}};
    Dialer dialer{loop_, options()};
    auto const dialled = dial(dialer, origin(server));
    ASSERT_NE(dialled->stream, nullptr) << dialled->message;
    auto status = Status::ok;
    while (status == Status::ok) {
        await_readable(*dialled->stream);  // the reset, or what came before it
        status = write(*dialled->stream, "x");
    }
    EXPECT_EQ(status, Status::error);
    EXPECT_TRUE(dialled->stream->error_text() == "connection reset by peer" ||
                dialled->stream->error_text() == "broken pipe")
        << dialled->stream->error_text();
}

TEST_F(Tls, MayBeDestroyedInsideItsCallbacks) {
    ScriptServer server{[](Wire& wire) {
                            wire.send("data");
                            wire.drain();
                        },
                        {.tls = server_context()}};
    Dialer dialer{loop_, options()};
    for (bool const reading : {true, false}) {
        auto const dialled = dial(dialer, origin(server));
        ASSERT_NE(dialled->stream, nullptr) << dialled->message;
        Ear ear;
        ear.then = [&] { dialled->stream.reset(); };
        dialled->stream->set_owner(&ear);
        if (reading) {
            dialled->stream->want_read();
        } else {
            dialled->stream->want_write();
        }
        EXPECT_TRUE(run_until([&] { return dialled->stream == nullptr; }));
        EXPECT_EQ(ear.readable + ear.writable, 1);
    }
}

TEST_F(Tls, IsSilentOnceDestroyed) {
    ScriptServer server{[](Wire& wire) {
                            wire.send("data");
                            wire.drain();
                        },
                        {.tls = server_context()}};
    Dialer dialer{loop_, options()};
    auto const first = dial(dialer, origin(server));
    ASSERT_NE(first->stream, nullptr) << first->message;
    Ear ear;
    first->stream->set_owner(&ear);
    first->stream->want_read();
    first->stream->want_write();
    first->stream.reset();
    // Another exchange gives the loop all the turns that a late callback would need.
    auto const second = dial(dialer, origin(server));
    ASSERT_NE(second->stream, nullptr) << second->message;
    EXPECT_EQ(read(*second->stream, 4).text, "data");
    EXPECT_EQ(ear.readable + ear.writable, 0);
}

TEST_F(Tls, NamesAnExpiredCertificate) {
    auto const message = refusal(certificates_.issue(
        {.dns_names = {"localhost"}, .validity = CertificateSpec::Validity::past}));
    EXPECT_NE(message.find("its certificate expired on 2001-01-01"), std::string::npos) << message;
}

TEST_F(Tls, NamesACertificateOfTheFuture) {
    auto const message = refusal(certificates_.issue(
        {.dns_names = {"localhost"}, .validity = CertificateSpec::Validity::future}));
    EXPECT_NE(message.find("is not valid before 2098-01-01; check this machine's clock"),
              std::string::npos)
        << message;
}

TEST_F(Tls, NamesASelfSignedCertificateAndTheWayOut) {
    auto const message = refusal(certificates_.self_signed({.dns_names = {"localhost"}}));
    EXPECT_NE(message.find("its certificate is self-signed"), std::string::npos) << message;
    EXPECT_NE(message.find("NetOptions::tls.ca_file"), std::string::npos) << message;
}

TEST_F(Tls, NamesAnUnknownAuthorityAndTheWayOut) {
    Certificates others;
    auto const message = refusal(others.issue({.dns_names = {"localhost"}}));
    // The two authorities have one name but not one key.
    EXPECT_NE(message.find("TLS with localhost:"), std::string::npos) << message;
    EXPECT_NE(message.find("signature failure"), std::string::npos) << message;
    NetOptions plain = options();
    plain.tls.ca_file.clear();
    ScriptServer server{[](Wire& wire) { wire.drain(); }, {.tls = server_context()}};
    Dialer dialer{loop_, plain};
    auto const dialled = dial(dialer, origin(server));
    EXPECT_EQ(dialled->failure, FailureKind::tls);
    EXPECT_NE(dialled->message.find("from an unknown authority ('tinkxx test authority')"),
              std::string::npos)
        << dialled->message;
    EXPECT_NE(dialled->message.find("NetOptions::tls.ca_file"), std::string::npos)
        << dialled->message;
}

TEST_F(Tls, NamesTheHostsOfACertificateForOthers) {
    auto const named = refusal(
        certificates_.issue({.dns_names = {"a.test", "b.test"}, .addresses = {"10.0.0.1"}}));
    EXPECT_NE(named.find("the certificate is for a.test, b.test, 10.0.0.1; asked for localhost"),
              std::string::npos)
        << named;
    auto const address = refusal(certificates_.issue({.dns_names = {"localhost"}}), "127.0.0.1");
    EXPECT_NE(address.find("the certificate is for localhost; asked for 127.0.0.1"),
              std::string::npos)
        << address;
    // A common name is not a host name.
    auto const common = refusal(certificates_.issue({.common_name = "localhost"}));
    EXPECT_NE(common.find("the certificate is for no host at all"), std::string::npos) << common;
}

TEST_F(Tls, NamesAPeerThatDoesNotSpeakTls) {
    ScriptServer server{[](Wire& wire) {
        wire.send("HTTP/1.1 400 Bad Request\r\n\r\n");
        wire.drain();
    }};
    Dialer dialer{loop_, options()};
    auto const dialled = dial(dialer, origin(server));
    EXPECT_EQ(dialled->failure, FailureKind::tls);
    EXPECT_NE(dialled->message.find("the peer does not speak TLS"), std::string::npos)
        << dialled->message;
    EXPECT_TRUE(dialled->permanent);
}

TEST_F(Tls, NamesAPeerThatHangsUp) {
    ScriptServer server{[](Wire& wire) {
        (void)wire.receive_some();
        wire.close();
    }};
    Dialer dialer{loop_, options()};
    auto const dialled = dial(dialer, origin(server));
    EXPECT_EQ(dialled->failure, FailureKind::tls);
    EXPECT_NE(dialled->message.find("failed: "), std::string::npos);
    EXPECT_FALSE(dialled->permanent) << "a server that is being restarted does so too";
}

TEST_F(Tls, RefusesVersionsThatAreTooOld) {
    auto const context = server_context();
    ::SSL_CTX_set_security_level(context.get(), 0);
    ::SSL_CTX_set_min_proto_version(context.get(), TLS1_VERSION);
    ::SSL_CTX_set_max_proto_version(context.get(), TLS1_1_VERSION);
    ScriptServer server{[](Wire& wire) { wire.drain(); }, {.tls = context}};
    Dialer dialer{loop_, options()};
    auto const dialled = dial(dialer, origin(server));
    EXPECT_EQ(dialled->failure, FailureKind::tls);
    EXPECT_NE(dialled->message.find("TLS 1.2 or newer is needed"), std::string::npos)
        << dialled->message;
    EXPECT_TRUE(dialled->permanent);
}

TEST_F(Tls, ShowsItsClientCertificate) {
    auto const files = certificates_.issue_for_loopback();
    auto const client = certificates_.issue({.common_name = "a client"});
    std::promise<std::string> shown;
    ScriptServer server{[&shown](Wire& wire) {
                            std::array<char, 100> name{};
                            auto* const certificate = ::SSL_get1_peer_certificate(wire.tls());
                            ::X509_NAME_oneline(::X509_get_subject_name(certificate), name.data(),
                                                static_cast<int>(name.size()));
                            ::X509_free(certificate);
                            shown.set_value(name.data());
                            wire.drain();
                        },
                        {.tls = server_context(files, certificates_.ca_file())}};
    auto with = options();
    with.tls.client_certificate_file = client.certificate_file;
    with.tls.client_key_file = client.key_file;
    Dialer dialer{loop_, with};
    auto const dialled = dial(dialer, origin(server));
    ASSERT_NE(dialled->stream, nullptr) << dialled->message;
    EXPECT_EQ(shown.get_future().get(), "/CN=a client");
}

TEST_F(Tls, NamesTheOptionThatAServerAsksFor) {
    auto const files = certificates_.issue_for_loopback();
    auto const context = server_context(files, certificates_.ca_file());
    {
        // TLS 1.3 lets the client finish first; the refusal is read like data.
        ScriptServer server{[](Wire& wire) { wire.drain(); }, {.tls = context}};
        Dialer dialer{loop_, options()};
        auto const dialled = dial(dialer, origin(server));
        ASSERT_NE(dialled->stream, nullptr) << dialled->message;
        EXPECT_EQ(read(*dialled->stream, 1).status, Status::error);
        EXPECT_EQ(dialled->stream->error_text(),
                  "the peer refused with the alert 'certificate required'; check "
                  "NetOptions::tls.client_certificate_file");
    }
    ::SSL_CTX_set_max_proto_version(context.get(), TLS1_2_VERSION);
    ScriptServer server{[](Wire& wire) { wire.drain(); }, {.tls = context}};
    Dialer dialer{loop_, options()};
    auto const dialled = dial(dialer, origin(server));
    EXPECT_EQ(dialled->failure, FailureKind::tls);
    EXPECT_NE(dialled->message.find("the alert 'handshake failure'"), std::string::npos)
        << dialled->message;
    EXPECT_NE(dialled->message.find("NetOptions::tls.client_certificate_file"), std::string::npos)
        << dialled->message;
}

TEST_F(Tls, ResumesSessionsAndUsesEachTicketOnce) {
    auto const context = server_context();
    ::SSL_CTX_set_num_tickets(context.get(), 1);
    ScriptServer server{[](Wire& wire) {
                            wire.send("x");
                            wire.drain();
                        },
                        {.tls = context}};
    Dialer dialer{loop_, options()};
    auto const first = dial(dialer, origin(server));
    ASSERT_NE(first->stream, nullptr) << first->message;
    EXPECT_EQ(read(*first->stream, 1).text, "x");  // and the one ticket
    first->stream.reset();

    auto const second = dial(dialer, origin(server));
    ASSERT_NE(second->stream, nullptr) << second->message;
    EXPECT_TRUE(second->stream->resumed());
    auto const third = dial(dialer, origin(server));  // the second read no ticket yet
    ASSERT_NE(third->stream, nullptr) << third->message;
    EXPECT_FALSE(third->stream->resumed());
}

TEST_F(Tls, ResumesTls12Sessions) {
    auto const context = server_context();
    ::SSL_CTX_set_max_proto_version(context.get(), TLS1_2_VERSION);
    ScriptServer server{[](Wire& wire) { wire.drain(); }, {.tls = context}};
    Dialer dialer{loop_, options()};
    for (bool const resumed : {false, true, true}) {
        auto const dialled = dial(dialer, origin(server));
        ASSERT_NE(dialled->stream, nullptr) << dialled->message;
        EXPECT_EQ(dialled->stream->resumed(), resumed);
        EXPECT_EQ(dialled->stream->alpn(), "h2");
    }
}

TEST_F(Tls, DoesNotResumeTheSessionsOfAnotherName) {
    auto const files = certificates_.issue({.dns_names = {"localhost", "other.test"}});
    ScriptServer server{[](Wire& wire) {
                            wire.send("x");
                            wire.drain();
                        },
                        {.tls = server_context(files)}};
    Dialer dialer{loop_, options()};
    auto const first = dial(dialer, origin(server));
    ASSERT_NE(first->stream, nullptr) << first->message;
    EXPECT_EQ(read(*first->stream, 1).text, "x");
    auto const other = dial(dialer, origin(server, "other.test"));
    ASSERT_NE(other->stream, nullptr) << other->message;
    EXPECT_FALSE(other->stream->resumed());
}

TEST_F(Tls, OutlivesItsDialer) {
    ScriptServer server{[](Wire& wire) {
                            wire.send("x");
                            wire.drain();
                        },
                        {.tls = server_context()}};
    std::unique_ptr<Stream> stream;
    {
        Dialer dialer{loop_, options()};
        auto const dialled = dial(dialer, origin(server));
        ASSERT_NE(dialled->stream, nullptr) << dialled->message;
        stream = std::move(dialled->stream);
    }
    EXPECT_EQ(read(*stream, 1).text, "x");
}

class TlsFiles : public Tls {
protected:
    /// The field and message of the error that `tls` leads to.
    std::pair<std::string, std::string> error_of(TlsOptions const& tls) {
        NetOptions with;
        with.tls = tls;
        try {
            Dialer const dialer{loop_, with};
        } catch (ValidationError const& error) {
            return {std::string{error.field()}, error.what()};
        }
        return {"none", ""};
    }
};

TEST_F(TlsFiles, AreNamedWhenTheyCannotBeUsed) {
    auto const client = certificates_.issue({.common_name = "client"});
    auto const other = certificates_.issue({.common_name = "other"});
    auto const nonsense = certificates_.write_file("nonsense.pem", "nonsense\n");

    auto const [missing, missing_message] = error_of({.ca_file = "/nonexistent/ca.pem"});
    EXPECT_EQ(missing, "tls.ca_file");
    EXPECT_NE(missing_message.find("'/nonexistent/ca.pem'"), std::string::npos) << missing_message;
    EXPECT_EQ(error_of({.ca_file = nonsense}).first, "tls.ca_file");
    EXPECT_EQ(error_of({.ca_file = certificates_.folder()}).first, "tls.ca_file");

    EXPECT_EQ(error_of({.client_certificate_file = client.certificate_file}).first,
              "tls.client_key_file");
    EXPECT_EQ(error_of({.client_key_file = client.key_file}).first, "tls.client_certificate_file");
    EXPECT_EQ(
        error_of({.client_certificate_file = nonsense, .client_key_file = client.key_file}).first,
        "tls.client_certificate_file");
    EXPECT_EQ(
        error_of({.client_certificate_file = client.certificate_file, .client_key_file = nonsense})
            .first,
        "tls.client_key_file");
    auto const [mismatch, mismatch_message] = error_of(
        {.client_certificate_file = client.certificate_file, .client_key_file = other.key_file});
    EXPECT_EQ(mismatch, "tls.client_key_file");
    EXPECT_NE(mismatch_message.find("not the key of the certificate"), std::string::npos)
        << mismatch_message;
    EXPECT_EQ(error_of({.client_certificate_file = client.certificate_file,
                        .client_key_file = client.key_file})
                  .first,
              "none");
}

TEST_F(TlsFiles, WithAPassphraseAreRefusedWithoutAskingForIt) {
    auto const client = certificates_.issue({.common_name = "client"});
    auto* const plain = std::fopen(client.key_file.c_str(), "re");
    auto* const key = ::PEM_read_PrivateKey(plain, nullptr, nullptr, nullptr);
    std::fclose(plain);
    auto const path = certificates_.write_file("encrypted.pem", "");
    auto* const encrypted = std::fopen(path.c_str(), "we");
    std::string passphrase = "secret";
    ::PEM_write_PrivateKey(encrypted, key, ::EVP_aes_256_cbc(),
                           reinterpret_cast<unsigned char*>(passphrase.data()),
                           static_cast<int>(passphrase.size()), nullptr, nullptr);
    std::fclose(encrypted);
    ::EVP_PKEY_free(key);
    EXPECT_EQ(
        error_of({.client_certificate_file = client.certificate_file, .client_key_file = path})
            .first,
        "tls.client_key_file");
}

}  // namespace
}  // namespace tinkxx::net
