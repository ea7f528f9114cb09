#include "net/tls/tls_errors.hpp"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <arpa/inet.h>

#include <array>
#include <ctime>
#include <memory>

namespace tinkxx::net {
namespace {

constexpr std::size_t most_names = 8;
constexpr std::size_t longest_name = 100;

/// Names come from the peer: kept short and printable.
std::string printable(std::string_view text) {
    std::string clean{text.substr(0, longest_name)};
    for (auto& c : clean) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    }
    return clean;
}

std::string date(ASN1_TIME const* time) {
    std::tm parts{};
    std::array<char, 16> text{};
    if (time == nullptr || ::ASN1_TIME_to_tm(time, &parts) != 1 ||
        std::strftime(text.data(), text.size(), "%Y-%m-%d", &parts) == 0) {
        return "an unknown date";
    }
    return text.data();
}

std::string common_name(X509_NAME const* name) {
    std::array<char, longest_name> text{};
    // Deprecated for its poor handling of exotic strings; this is for a message only.
    auto const size = ::X509_NAME_get_text_by_NID(name, NID_commonName, text.data(),
                                                  static_cast<int>(text.size()));
    return size > 0 ? printable({text.data(), static_cast<std::size_t>(size)}) : "unnamed";
}

std::string address_text(ASN1_OCTET_STRING const* address) {
    auto const size = ::ASN1_STRING_length(address);
    if (size != 4 && size != 16) return "?";
    std::array<char, INET6_ADDRSTRLEN> text{};
    ::inet_ntop(size == 4 ? AF_INET : AF_INET6, ::ASN1_STRING_get0_data(address), text.data(),
                static_cast<socklen_t>(text.size()));
    return text.data();
}

/// "a, b" for the hosts and addresses that a certificate is for.
std::string names_of(X509 const* certificate) {
    struct Free {
        void operator()(GENERAL_NAMES* names) const noexcept { ::GENERAL_NAMES_free(names); }
    };
    std::unique_ptr<GENERAL_NAMES, Free> const names{static_cast<GENERAL_NAMES*>(
        ::X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr))};
    std::string list;
    std::size_t listed = 0;
    for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
        auto const* const name = sk_GENERAL_NAME_value(names.get(), i);
        std::string text;
        if (name->type == GEN_DNS) {
            text =
                printable({reinterpret_cast<char const*>(::ASN1_STRING_get0_data(name->d.dNSName)),
                           static_cast<std::size_t>(::ASN1_STRING_length(name->d.dNSName))});
        } else if (name->type == GEN_IPADD) {
            text = address_text(name->d.iPAddress);
        } else {
            continue;
        }
        if (listed++ == most_names) return list + ", ...";
        if (!list.empty()) list += ", ";
        list += text;
    }
    return list.empty() ? "no host at all" : list;
}

std::string explain_alert(int alert) {
    std::string const name =
        alert == 116 ? "certificate required" : ::SSL_alert_desc_string_long(alert);
    auto text = "the peer refused with the alert '" + name + "'";
    switch (alert) {
        case SSL_AD_HANDSHAKE_FAILURE:
            return text +
                   ": no common cipher, or it wants a client certificate "
                   "(NetOptions::tls.client_certificate_file)";
        case SSL_AD_BAD_CERTIFICATE:
        case SSL_AD_UNSUPPORTED_CERTIFICATE:
        case SSL_AD_CERTIFICATE_REVOKED:
        case SSL_AD_CERTIFICATE_EXPIRED:
        case SSL_AD_CERTIFICATE_UNKNOWN:
        case SSL_AD_UNKNOWN_CA:
        case SSL_AD_ACCESS_DENIED:
        case SSL_AD_CERTIFICATE_REQUIRED:
            return text + "; check NetOptions::tls.client_certificate_file";
        case SSL_AD_PROTOCOL_VERSION:
            return text + ": no common version; TLS 1.2 or newer is needed";
        case SSL_AD_NO_APPLICATION_PROTOCOL:
            return text + ": no common HTTP version; see NetOptions::http_version";
        default:
            return text;
    }
}

}  // namespace

std::string explain_refusal(X509_STORE_CTX* verification, std::string_view host) {
    auto const code = ::X509_STORE_CTX_get_error(verification);
    auto const* const certificate = ::X509_STORE_CTX_get_current_cert(verification);
    bool const leaf = ::X509_STORE_CTX_get_error_depth(verification) == 0;
    std::string whose = "its certificate";
    if (!leaf && certificate != nullptr) {
        whose = "the certificate of its authority '" +
                common_name(::X509_get_subject_name(certificate)) + "'";
    }
    switch (code) {
        case X509_V_ERR_CERT_HAS_EXPIRED:
            return whose + " expired on " + date(::X509_get0_notAfter(certificate)) +
                   "; it must be renewed, or this machine's clock is wrong";
        case X509_V_ERR_CERT_NOT_YET_VALID:
            return whose + " is not valid before " + date(::X509_get0_notBefore(certificate)) +
                   "; check this machine's clock";
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
            return whose +
                   " is self-signed; if you trust it, name its file in "
                   "NetOptions::tls.ca_file";
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
        case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE: {
            auto const authority = certificate == nullptr
                                       ? std::string{"unnamed"}
                                       : common_name(::X509_get_issuer_name(certificate));
            return "its certificate is from an unknown authority ('" + authority +
                   "'); if you trust that, name its file in NetOptions::tls.ca_file";
        }
        case X509_V_ERR_HOSTNAME_MISMATCH:
        case X509_V_ERR_IP_ADDRESS_MISMATCH:
            return "the certificate is for " + names_of(::X509_STORE_CTX_get0_cert(verification)) +
                   "; asked for " + std::string{host} + "; use a name that it is for";
        default:
            return whose + " was refused: " + ::X509_verify_cert_error_string(code) +
                   "; check the certificate of the server and NetOptions::tls";
    }
}

std::string explain_tls_error(unsigned long error, bool handshaking) {
    if (ERR_GET_LIB(error) == ERR_LIB_SSL) {
        auto const reason = ERR_GET_REASON(error);
        if (reason >= SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256) {
            return explain_alert(reason - SSL_AD_REASON_OFFSET);
        }
        switch (reason) {
            case SSL_R_UNEXPECTED_EOF_WHILE_READING:
                return handshaking ? "the peer closed the connection during the TLS handshake"
                                   : "connection closed without TLS close_notify";
            case SSL_R_PACKET_LENGTH_TOO_LONG:
                if (!handshaking) break;
                [[fallthrough]];  // newer versions of OpenSSL read plain text as a length
            case SSL_R_WRONG_VERSION_NUMBER:
            case SSL_R_HTTP_REQUEST:
            case SSL_R_HTTPS_PROXY_REQUEST:
                return "the peer does not speak TLS; use http:// or another port";
            case SSL_R_UNSUPPORTED_PROTOCOL:
            case SSL_R_VERSION_TOO_LOW:
                return "no common version; TLS 1.2 or newer is needed";
            default:
                break;
        }
    }
    auto const* const text = ::ERR_reason_error_string(error);
    return std::string{"TLS error: "} + (text != nullptr ? text : "unknown");
}

bool stays_broken(unsigned long error) noexcept {
    if (ERR_GET_LIB(error) != ERR_LIB_SSL) return false;
    switch (ERR_GET_REASON(error)) {
        case SSL_AD_REASON_OFFSET + SSL_AD_HANDSHAKE_FAILURE:
        case SSL_AD_REASON_OFFSET + SSL_AD_BAD_CERTIFICATE:
        case SSL_AD_REASON_OFFSET + SSL_AD_UNSUPPORTED_CERTIFICATE:
        case SSL_AD_REASON_OFFSET + SSL_AD_CERTIFICATE_REVOKED:
        case SSL_AD_REASON_OFFSET + SSL_AD_CERTIFICATE_EXPIRED:
        case SSL_AD_REASON_OFFSET + SSL_AD_CERTIFICATE_UNKNOWN:
        case SSL_AD_REASON_OFFSET + SSL_AD_UNKNOWN_CA:
        case SSL_AD_REASON_OFFSET + SSL_AD_ACCESS_DENIED:
        case SSL_AD_REASON_OFFSET + SSL_AD_PROTOCOL_VERSION:
        case SSL_AD_REASON_OFFSET + SSL_AD_INSUFFICIENT_SECURITY:
        case SSL_AD_REASON_OFFSET + SSL_AD_UNRECOGNIZED_NAME:
        case SSL_AD_REASON_OFFSET + SSL_AD_CERTIFICATE_REQUIRED:
        case SSL_AD_REASON_OFFSET + SSL_AD_NO_APPLICATION_PROTOCOL:
        case SSL_R_UNSUPPORTED_PROTOCOL:
        case SSL_R_VERSION_TOO_LOW:
        case SSL_R_WRONG_VERSION_NUMBER:
        case SSL_R_HTTP_REQUEST:
        case SSL_R_HTTPS_PROXY_REQUEST:
        case SSL_R_PACKET_LENGTH_TOO_LONG:
            return true;
        default:
            return false;
    }
}

std::string last_openssl_error() {
    auto const error = ::ERR_peek_last_error();
    auto const* const text = ERR_SYSTEM_ERROR(error) ? nullptr : ::ERR_reason_error_string(error);
    std::string result = text != nullptr ? text : "unreadable";
    ::ERR_clear_error();
    return result;
}

}  // namespace tinkxx::net
