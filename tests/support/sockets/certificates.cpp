#include "support/sockets/certificates.hpp"

#include <openssl/asn1.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace tinkxx::test {
namespace {

template <auto Free>
struct Deleter {
    template <class T>
    void operator()(T* object) const noexcept {
        Free(object);
    }
};
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>>;
using File = std::unique_ptr<std::FILE, Deleter<std::fclose>>;

void require(bool good, char const* what) {
    if (!good) throw std::runtime_error{std::string{"test certificates: "} + what};
}

Key make_key() {
    Key key{EVP_EC_gen("P-256")};
    require(key != nullptr, "cannot make a key");
    return key;
}

void add_extension(X509* certificate, X509* issuer, int nid, std::string const& value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    Extension const extension{X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str())};
    require(extension && X509_add_ext(certificate, extension.get(), -1) == 1, "bad extension");
}

enum class Role { authority, leaf };

/// Signed by `issuer` with `issuer_key`; by itself if `issuer` is null. Dates are fixed, so that
/// no test depends on the day it runs on.
Certificate make_certificate(CertificateSpec const& spec, Role role, long serial, EVP_PKEY* key,
                             X509* issuer, EVP_PKEY* issuer_key) {
    Certificate certificate{X509_new()};
    require(certificate != nullptr, "out of memory");
    auto* const x509 = certificate.get();
    X509_set_version(x509, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x509), serial);

    using Validity = CertificateSpec::Validity;
    auto const* const begin =
        spec.validity == Validity::future ? "20980101000000Z" : "20000101000000Z";
    auto const* const end = spec.validity == Validity::past ? "20010101000000Z" : "20991231000000Z";
    require(ASN1_TIME_set_string_X509(X509_getm_notBefore(x509), begin) == 1, "bad date");
    require(ASN1_TIME_set_string_X509(X509_getm_notAfter(x509), end) == 1, "bad date");

    auto* const name = X509_get_subject_name(x509);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                               reinterpret_cast<unsigned char const*>(spec.common_name.c_str()), -1,
                               -1, 0);
    if (issuer == nullptr) issuer = x509;
    X509_set_issuer_name(x509, X509_get_subject_name(issuer));
    X509_set_pubkey(x509, key);

    if (role == Role::authority) {
        add_extension(x509, issuer, NID_basic_constraints, "critical,CA:TRUE");
        add_extension(x509, issuer, NID_key_usage, "critical,keyCertSign,cRLSign");
    } else {
        add_extension(x509, issuer, NID_basic_constraints, "critical,CA:FALSE");
        add_extension(x509, issuer, NID_ext_key_usage, "serverAuth,clientAuth");
    }
    std::string names;
    for (auto const& dns : spec.dns_names) names += (names.empty() ? "DNS:" : ",DNS:") + dns;
    for (auto const& ip : spec.addresses) names += (names.empty() ? "IP:" : ",IP:") + ip;
    if (!names.empty()) add_extension(x509, issuer, NID_subject_alt_name, names);

    require(X509_sign(x509, issuer_key, EVP_sha256()) > 0, "cannot sign");
    return certificate;
}

}  // namespace

struct Certificates::Impl {
    std::string folder;
    std::string ca_file;
    Key ca_key;
    Certificate ca;
    long serial{1};

    [[nodiscard]] std::string path(std::string const& name) const { return folder + "/" + name; }

    [[nodiscard]] static File open(std::string const& file) {
        File stream{std::fopen(file.c_str(), "we")};
        require(stream != nullptr, "cannot write a file");
        return stream;
    }

    static void write(std::string const& file, X509* certificate) {
        require(PEM_write_X509(open(file).get(), certificate) == 1, "cannot write a certificate");
    }

    CertificateFiles write(X509* certificate, EVP_PKEY* key) const {
        auto const stem = path("leaf" + std::to_string(serial));
        CertificateFiles files{.certificate_file = stem + ".crt.pem",
                               .key_file = stem + ".key.pem"};
        write(files.certificate_file, certificate);
        require(PEM_write_PrivateKey(open(files.key_file).get(), key, nullptr, nullptr, 0, nullptr,
                                     nullptr) == 1,
                "cannot write a key");
        return files;
    }
};

Certificates::Certificates() : impl_{std::make_unique<Impl>()} {
    auto pattern = (std::filesystem::temp_directory_path() / "tinkxx-certificates-XXXXXX").string();
    require(::mkdtemp(pattern.data()) != nullptr, "cannot make a temporary folder");
    impl_->folder = pattern;
    impl_->ca_key = make_key();
    impl_->ca = make_certificate({.common_name = "tinkxx test authority"}, Role::authority,
                                 impl_->serial, impl_->ca_key.get(), nullptr, impl_->ca_key.get());
    impl_->ca_file = impl_->path("ca.crt.pem");
    Impl::write(impl_->ca_file, impl_->ca.get());
}

Certificates::~Certificates() {
    std::error_code ignored;
    std::filesystem::remove_all(impl_->folder, ignored);
}

std::string const& Certificates::ca_file() const noexcept { return impl_->ca_file; }
std::string const& Certificates::folder() const noexcept { return impl_->folder; }

CertificateFiles Certificates::issue(CertificateSpec const& spec) {
    auto const key = make_key();
    auto const certificate = make_certificate(spec, Role::leaf, ++impl_->serial, key.get(),
                                              impl_->ca.get(), impl_->ca_key.get());
    return impl_->write(certificate.get(), key.get());
}

CertificateFiles Certificates::self_signed(CertificateSpec const& spec) {
    auto const key = make_key();
    auto const certificate =
        make_certificate(spec, Role::leaf, ++impl_->serial, key.get(), nullptr, key.get());
    return impl_->write(certificate.get(), key.get());
}

CertificateFiles Certificates::issue_for_loopback() {
    return issue({.common_name = "localhost",
                  .dns_names = {"localhost"},
                  .addresses = {"127.0.0.1", "::1"}});
}

std::string Certificates::write_file(std::string const& name, std::string const& content) {
    auto file = impl_->path(name);
    auto const stream = Impl::open(file);
    require(std::fwrite(content.data(), 1, content.size(), stream.get()) == content.size(),
            "cannot write a file");
    return file;
}

}  // namespace tinkxx::test
