#pragma once

#include <openssl/ssl.h>

#include <string>
#include <string_view>

namespace tinkxx::net {

/// Why a certificate was refused, and the way out; inside a verification callback. `host` is
/// what was asked for.
[[nodiscard]] std::string explain_refusal(X509_STORE_CTX* verification, std::string_view host);

/// What an error of OpenSSL's queue means, and the way out.
[[nodiscard]] std::string explain_tls_error(unsigned long error, bool handshaking);

/// Whether an error of OpenSSL's queue, from a handshake, would be there the next time too: the
/// two sides do not fit, or the peer does not speak TLS. A connection that was cut is no such
/// error.
[[nodiscard]] bool stays_broken(unsigned long error) noexcept;

/// The text of OpenSSL's newest error, e.g. why a file could not be read.
[[nodiscard]] std::string last_openssl_error();

}  // namespace tinkxx::net
