// Servers that a client can never work with: each call fails at once, and says what to do.
#include "socket/modes.hpp"
#include "support/servers/canned_tinker.hpp"
#include "support/servers/script_server.hpp"

#include <tinkxx/service_client.hpp>

#include <gmock/gmock.h>

#include <string>
#include <utility>

namespace tinkxx::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

ClientOptions options(std::string url) {
    ClientOptions all;
    all.base_url = std::move(url);
    all.api_key = "tml-test";
    all.telemetry = false;
    all.runtime = Runtime{};
    all.net.tls.ca_file = certificates().ca_file();
    return all;
}

/// Why a sample fails.
Error failure_of(ClientOptions all) {
    ServiceClient const service{std::move(all)};
    auto const sampler = service.create_sampling_client("org/tiny");
    auto pending = sampler.sample(ModelInput::from_tokens({1}), {.max_tokens = 4});
    auto const result = pending.result();
    if (result) return Error{{.message = "it succeeded"}};
    EXPECT_EQ(result.error().kind(), ErrorKind::connection) << result.error().what();
    EXPECT_FALSE(result.error().retryable());
    EXPECT_EQ(result.error().stopped(), RetryEnd::permanent);
    return result.error();
}

Error failure_with(CertificateFiles const& files) {
    CannedTinker tinker{{}};
    HttpServerOptions with;
    with.tls =
        make_tls_server({.certificate_file = files.certificate_file, .key_file = files.key_file});
    HttpServer const server{std::ref(tinker), with};
    auto error = failure_of(options(server.url("")));
    EXPECT_EQ(server.counts().connections, 1) << "it was tried again";
    EXPECT_EQ(server.counts().requests, 0);
    return error;
}

TEST(FirstContact, ASelfSignedCertificateFailsAtOnce) {
    auto const error = failure_with(certificates().self_signed({.addresses = {"127.0.0.1"}}));
    EXPECT_THAT(error.what(), AllOf(HasSubstr("sample: "), HasSubstr("self-signed"),
                                    HasSubstr("NetOptions::tls.ca_file")));
}

TEST(FirstContact, AnExpiredCertificateFailsAtOnce) {
    auto const error = failure_with(certificates().issue(
        {.addresses = {"127.0.0.1"}, .validity = CertificateSpec::Validity::past}));
    EXPECT_THAT(error.what(), AllOf(HasSubstr("expired on"), HasSubstr("must be renewed")));
}

TEST(FirstContact, ACertificateOfAnotherHostFailsAtOnce) {
    auto const error = failure_with(certificates().issue({.dns_names = {"other.example"}}));
    EXPECT_THAT(error.what(), AllOf(HasSubstr("the certificate is for other.example"),
                                    HasSubstr("use a name that it is for")));
}

TEST(FirstContact, APlainPortBehindHttpsFailsAtOnce) {
    ScriptServer const server{[](Wire& wire) {
        (void)wire.receive_some();
        wire.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        wire.drain();
    }};
    auto const error = failure_of(options("https://127.0.0.1:" + std::to_string(server.port())));
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("does not speak TLS"), HasSubstr("use http:// or another port")));
}

TEST(FirstContact, AHostThatNobodyKnowsFailsAfterASecondLook) {
    auto const error = failure_of(options("https://no-such-host.invalid"));
    EXPECT_THAT(error.what(), AllOf(HasSubstr("cannot resolve 'no-such-host.invalid'"),
                                    HasSubstr("TINKER_BASE_URL or ClientOptions::base_url")));
}

}  // namespace
}  // namespace tinkxx::test
