#pragma once

#include <memory>
#include <string>
#include <vector>

namespace tinkxx::test {

/// What a certificate says.
struct CertificateSpec {
    enum class Validity {
        now,     ///< 2000 to 2099
        past,    ///< ended in 2001
        future,  ///< begins in 2098
    };
    std::string common_name{"test"};
    std::vector<std::string> dns_names{};
    std::vector<std::string> addresses{};  ///< IPv4 or IPv6, as text
    Validity validity{Validity::now};
};

/// Where a certificate and its key lie, as PEM.
struct CertificateFiles {
    std::string certificate_file{};
    std::string key_file{};
};

/// Makes certificates for tests, with fresh P-256 keys, in a temporary folder that goes away
/// with it. Throws `std::runtime_error` if OpenSSL or the file system refuse.
class Certificates {
public:
    /// A folder with one authority in it, whose certificate is `ca_file()`.
    Certificates();
    ~Certificates();
    Certificates(Certificates const&) = delete;
    Certificates& operator=(Certificates const&) = delete;

    [[nodiscard]] std::string const& ca_file() const noexcept;
    [[nodiscard]] std::string const& folder() const noexcept;
    /// A certificate signed by the authority, good for servers and clients alike.
    [[nodiscard]] CertificateFiles issue(CertificateSpec const& spec);
    /// A certificate that is its own authority.
    [[nodiscard]] CertificateFiles self_signed(CertificateSpec const& spec);
    /// For servers that the usual tests talk to: "localhost", 127.0.0.1 and ::1.
    [[nodiscard]] CertificateFiles issue_for_loopback();
    /// Writes `content` to a file of that name in the folder; returns its path.
    std::string write_file(std::string const& name, std::string const& content);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace tinkxx::test
