#pragma once

#include "support/servers/http2_script.hpp"
#include "support/servers/http_server.hpp"
#include "support/sockets/certificates.hpp"
#include "support/sockets/http_driver.hpp"

#include <tinkxx/net_transport.hpp>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace tinkxx::test {

/// The ways to reach a server, each of which the tests of behaviour go.
struct Mode {
    HttpVersion version{HttpVersion::http1};
    bool tls{false};

    [[nodiscard]] bool http2() const noexcept { return version == HttpVersion::http2; }
};

inline std::string mode_name(testing::TestParamInfo<Mode> const& info) {
    return std::string{info.param.http2() ? "Http2" : "Http1"} +
           (info.param.tls ? "Tls" : "Cleartext");
}

inline auto all_modes() {
    return testing::Values(Mode{HttpVersion::http1, false}, Mode{HttpVersion::http1, true},
                           Mode{HttpVersion::http2, false}, Mode{HttpVersion::http2, true});
}

/// One authority for the whole program: keys are slow to make under sanitizers.
inline Certificates& certificates() {
    static Certificates all;
    return all;
}

inline CertificateFiles const& loopback_certificate() {
    static CertificateFiles const files = certificates().issue_for_loopback();
    return files;
}

inline std::shared_ptr<SSL_CTX> tls_server(std::string alpn = "h2,http/1.1") {
    auto const& files = loopback_certificate();
    return make_tls_server({.certificate_file = files.certificate_file,
                            .key_file = files.key_file,
                            .alpn = std::move(alpn)});
}

inline NetOptions net_options(Mode mode) {
    NetOptions options;
    options.http_version = mode.version;
    if (mode.tls) options.tls.ca_file = certificates().ca_file();
    return options;
}

inline HttpServerOptions server_options(Mode mode) {
    HttpServerOptions options;
    if (mode.tls) options.tls = tls_server(mode.http2() ? "h2" : "http/1.1");
    return options;
}

inline ScriptServerOptions script_options(Mode mode) {
    ScriptServerOptions options;
    if (mode.tls) options.tls = tls_server(mode.http2() ? "h2" : "http/1.1");
    return options;
}

/// Listens and never accepts, with a full queue: connecting to it takes for ever.
class DeadEnd {
public:
    /// Port 0 takes a free one.
    DeadEnd(Family family, std::uint16_t port) : listener_{listen_on_loopback(family, port, 0)} {
        for (int i = 0; i < 3; ++i) {
            clients_.push_back(connect_without_waiting(family, this->port()));
        }
    }
    [[nodiscard]] std::uint16_t port() const { return port_of(listener_); }

private:
    Fd listener_;
    std::vector<Fd> clients_;
};

/// The most memory this process ever used, in bytes.
inline std::size_t peak_memory() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

/// HTTP/1.1 in the clear, for what does not depend on how it is sent.
inline constexpr Mode http1_cleartext{HttpVersion::http1, false};
inline constexpr Mode http2_cleartext{HttpVersion::http2, false};
inline constexpr Mode http2_tls{HttpVersion::http2, true};

}  // namespace tinkxx::test
