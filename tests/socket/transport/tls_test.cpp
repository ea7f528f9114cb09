// Who is trusted, who is not, and how that is said.
#include "socket/modes.hpp"

#include <tinkxx/error.hpp>

#include <gmock/gmock.h>

namespace tinkxx::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

CertificateSpec loopback_spec() {
    return {
        .common_name = "loopback", .dns_names = {"localhost"}, .addresses = {"127.0.0.1", "::1"}};
}

HttpServerOptions with(CertificateFiles const& files) {
    HttpServerOptions options;
    options.tls =
        make_tls_server({.certificate_file = files.certificate_file, .key_file = files.key_file});
    return options;
}

NetOptions trusting() {
    NetOptions options;
    options.tls.ca_file = certificates().ca_file();
    return options;
}

Failure failure_with(CertificateFiles const& files, NetOptions options,
                     std::string host = "127.0.0.1") {
    HttpServer server{echo, with(files)};
    options.resolve[host] = {"127.0.0.1"};
    HttpDriver driver{options};
    auto request = post_request("https://" + host + ":" + std::to_string(server.port()), "secret");
    request.headers.add("Authorization", "Bearer secret");
    auto const outcome = driver.run(request);
    EXPECT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(server.counts().requests, 0) << "a request went to a server that is not trusted";
    return outcome.failure.value_or(Failure{});
}

/// Why no connection comes about with a server that is set up like this.
std::string handshake_failure(std::shared_ptr<SSL_CTX> context) {
    ScriptServer server{[](Wire& wire) { wire.drain(); }, {.tls = std::move(context)}};
    HttpDriver driver{trusting()};
    auto const outcome = driver.get(server.url());
    if (!outcome.failure) return "none: " + outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::tls) << outcome.text();
    return outcome.failure->message;
}

TEST(Tls, AnAuthorityFromAFileIsTrusted) {
    HttpServer server{echo, with(certificates().issue_for_loopback())};
    HttpDriver driver{trusting()};
    EXPECT_EQ(driver.post(server.url(), "x").body, "x");
}

TEST(Tls, AnUnknownAuthorityIsRefusedByName) {
    auto const failure = failure_with(certificates().issue_for_loopback(), NetOptions{});
    EXPECT_EQ(failure.kind, FailureKind::tls) << failure.message;
    EXPECT_EQ(failure.seen, Seen::no);
    EXPECT_THAT(failure.message, AnyOf(HasSubstr("issuer"), HasSubstr("authority")));
    EXPECT_THAT(failure.message, HasSubstr("127.0.0.1"));
}

TEST(Tls, AnExpiredCertificateIsRefusedByName) {
    auto spec = loopback_spec();
    spec.validity = CertificateSpec::Validity::past;
    auto const failure = failure_with(certificates().issue(spec), trusting());
    EXPECT_EQ(failure.kind, FailureKind::tls) << failure.message;
    EXPECT_THAT(failure.message, HasSubstr("expired"));
}

TEST(Tls, ACertificateOfTheFutureIsRefusedByName) {
    auto spec = loopback_spec();
    spec.validity = CertificateSpec::Validity::future;
    auto const failure = failure_with(certificates().issue(spec), trusting());
    EXPECT_EQ(failure.kind, FailureKind::tls) << failure.message;
    EXPECT_THAT(failure.message, HasSubstr("not valid before 2098"));
}

TEST(Tls, ASelfSignedCertificateIsRefusedByName) {
    auto const failure = failure_with(certificates().self_signed(loopback_spec()), trusting());
    EXPECT_EQ(failure.kind, FailureKind::tls) << failure.message;
    EXPECT_THAT(failure.message, HasSubstr("self-signed"));
}

TEST(Tls, ASelfSignedCertificateIsTrustedIfItIsTheAuthority) {
    auto const files = certificates().self_signed(loopback_spec());
    HttpServer server{echo, with(files)};
    NetOptions options;
    options.tls.ca_file = files.certificate_file;
    HttpDriver driver{options};
    EXPECT_EQ(driver.post(server.url(), "x").body, "x");
}

TEST(Tls, ACertificateOfAnotherHostIsRefusedByName) {
    auto const files =
        certificates().issue({.common_name = "other", .dns_names = {"other.example"}});
    auto const by_address = failure_with(files, trusting());
    EXPECT_EQ(by_address.kind, FailureKind::tls) << by_address.message;
    EXPECT_THAT(by_address.message, HasSubstr("127.0.0.1"));
    EXPECT_THAT(by_address.message, HasSubstr("for other.example"));

    auto const by_name = failure_with(files, trusting(), "wanted.example");
    EXPECT_EQ(by_name.kind, FailureKind::tls) << by_name.message;
    EXPECT_THAT(by_name.message, HasSubstr("wanted.example"));
}

TEST(Tls, NamesAndWildcardsAreMatched) {
    auto const files = certificates().issue(
        {.common_name = "wild", .dns_names = {"api.example", "*.wild.example"}});
    HttpServer server{echo, with(files)};
    auto options = trusting();
    for (std::string const host : {"api.example", "one.wild.example"}) {
        options.resolve[host] = {"127.0.0.1"};
    }
    options.resolve["a.b.wild.example"] = {"127.0.0.1"};
    HttpDriver driver{options};
    auto const url = [&](std::string const& host) {
        return "https://" + host + ":" + std::to_string(server.port()) + "/";
    };
    EXPECT_EQ(driver.post(url("api.example"), "x").body, "x");
    EXPECT_EQ(driver.post(url("one.wild.example"), "x").body, "x");
    EXPECT_EQ(driver.post(url("a.b.wild.example"), "x").failure->kind, FailureKind::tls);
}

TEST(Tls, TheNameIsSentToTheServer) {
    std::string name;
    ScriptServerOptions options;
    options.tls = tls_server("http/1.1");
    ScriptServer server{[&](Wire& wire) {
                            (void)read_request(wire);
                            auto const* sent =
                                SSL_get_servername(wire.tls(), TLSEXT_NAMETYPE_host_name);
                            name = sent == nullptr ? "" : sent;
                            wire.send(http1_answer({}));
                        },
                        options};
    auto net = trusting();
    net.resolve["localhost"] = {"127.0.0.1"};
    HttpDriver driver{net};
    ASSERT_EQ(driver.get("https://localhost:" + std::to_string(server.port())).status(), 200);
    EXPECT_EQ(name, "localhost");
    // An address is not a name (RFC 6066).
    ASSERT_EQ(driver.get(server.url()).status(), 200);
    EXPECT_EQ(name, "");
}

TEST(Tls, AClientCertificateIsShown) {
    auto const server_files = certificates().issue_for_loopback();
    HttpServerOptions options;
    options.tls = make_tls_server({.certificate_file = server_files.certificate_file,
                                   .key_file = server_files.key_file,
                                   .client_ca_file = certificates().ca_file()});
    HttpServer server{echo, options};
    auto const client_files = certificates().issue({.common_name = "the client"});
    auto net = trusting();
    net.tls.client_certificate_file = client_files.certificate_file;
    net.tls.client_key_file = client_files.key_file;
    HttpDriver with_one{net};
    EXPECT_EQ(with_one.post(server.url(), "x").body, "x");

    HttpDriver without{trusting()};
    auto const refused = without.post(server.url(), "x");
    ASSERT_TRUE(refused.failure) << refused.text();
    EXPECT_THAT(refused.failure->message, HasSubstr("certificate")) << refused.text();
}

TEST(Tls, SessionsAreResumed) {
    for (auto const alpn : {"h2", "http/1.1"}) {
        HttpServerOptions options;
        options.tls = tls_server(alpn);
        HttpServer server{echo, options};
        HttpDriver driver{trusting()};
        for (int i = 0; i < 5; ++i) {
            ASSERT_EQ(driver.post(server.url(), "x").status(), 200);
            server.say_goodbye();
            ASSERT_TRUE(
                server.wait_for([](auto const& seen) { return seen.open_connections == 0; }));
            driver.on_loop([] {});
        }
        EXPECT_EQ(server.counts().connections, 5);
        EXPECT_EQ(server.counts().resumed, 4) << alpn;
    }
}

TEST(Tls, AServerWithoutTlsIsNamedAsSuch) {
    ScriptServer server{[](Wire& wire) {
        (void)wire.receive_some();
        wire.send("HTTP/1.1 400 Bad Request\r\n\r\n");
        wire.finish();
        wire.drain();
    }};
    HttpDriver driver{trusting()};
    auto const outcome = driver.get("https://127.0.0.1:" + std::to_string(server.port()));
    ASSERT_TRUE(outcome.failure) << outcome.text();
    EXPECT_EQ(outcome.failure->kind, FailureKind::tls) << outcome.text();
    EXPECT_EQ(outcome.failure->seen, Seen::no);
}

TEST(Tls, AServerOfNoCommonVersionIsNamedAsSuch) {
    auto context = tls_server("http/1.1");
    SSL_CTX_set_security_level(context.get(), 0);
    SSL_CTX_set_max_proto_version(context.get(), TLS1_1_VERSION);
    EXPECT_THAT(handshake_failure(context), HasSubstr("TLS 1.2 or newer"));
}

TEST(Tls, AServerThatKnowsNoVersionOfHttpIsNamedAsSuch) {
    auto context = tls_server("http/1.1");
    SSL_CTX_set_alpn_select_cb(
        context.get(),
        [](SSL*, unsigned char const**, unsigned char*, unsigned char const*, unsigned, void*) {
            return SSL_TLSEXT_ERR_ALERT_FATAL;
        },
        nullptr);
    EXPECT_THAT(handshake_failure(context), HasSubstr("no common HTTP version"));
}

TEST(Tls, AHandshakeCutOffAnywhereFailsOnce) {
    for (std::size_t cut = 0; cut < 120; cut += 7) {
        ScriptServer server{[cut](Wire& wire) {
            (void)wire.receive_some();
            // A ServerHello of sorts, never complete.
            std::string const hello =
                std::string("\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03", 11) +
                std::string(120, 'r');
            wire.send(std::string_view{hello}.substr(0, cut));
            if (cut % 2 == 0) {
                wire.reset();
            } else {
                wire.close();
            }
        }};
        HttpDriver driver{trusting()};
        auto const outcome = driver.get("https://127.0.0.1:" + std::to_string(server.port()));
        ASSERT_TRUE(outcome.failure) << outcome.text();
        EXPECT_TRUE(outcome.failure->kind == FailureKind::tls ||
                    outcome.failure->kind == FailureKind::connect)
            << outcome.text();
        EXPECT_EQ(outcome.failure->seen, Seen::no);
    }
}

TEST(Tls, AnAnswerCutOffWithoutACloseNotifyIsNotTakenAsComplete) {
    // Until-close bodies over TLS: only close_notify says that the end is the end.
    for (bool const notified : {true, false}) {
        ScriptServer server{[&](Wire& wire) {
                                (void)read_request(wire);
                                wire.send("HTTP/1.1 200 OK\r\n\r\nhalf of a secret");
                                if (notified) {
                                    wire.close();
                                } else {
                                    SSL_set_quiet_shutdown(wire.tls(), 1);
                                    wire.close();
                                }
                            },
                            script_options({HttpVersion::http1, true})};
        HttpDriver driver{net_options({HttpVersion::http1, true})};
        auto const outcome = driver.get(server.url());
        EXPECT_EQ(outcome.done, notified) << outcome.text();
    }
}

TEST(Tls, FilesThatCannotBeReadAreRefusedBeforeAnythingIsSent) {
    Runtime runtime;
    NetOptions options;
    options.tls.ca_file = "/nonexistent/ca.pem";
    try {
        (void)net_transport(runtime, options);
        FAIL() << "accepted";
    } catch (ValidationError const& error) {
        EXPECT_THAT(error.what(), HasSubstr("/nonexistent/ca.pem"));
    }
    options.tls.ca_file = certificates().write_file("broken.pem", "not a certificate");
    EXPECT_THROW((void)net_transport(runtime, options), ValidationError);
    options.tls.ca_file.clear();
    options.tls.client_certificate_file = loopback_certificate().certificate_file;
    EXPECT_THROW((void)net_transport(runtime, options), ValidationError) << "a key is missing";
    options.tls.client_key_file = certificates().issue_for_loopback().key_file;
    EXPECT_THROW((void)net_transport(runtime, options), ValidationError) << "the key of another";
}

}  // namespace
}  // namespace tinkxx::test
