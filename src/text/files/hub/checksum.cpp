#include "text/files/hub/checksum.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <system_error>

namespace tinkxx::text::files {

namespace {

constexpr std::size_t sha256_digits = 64;
constexpr std::size_t sha1_digits = 40;

struct FreeDigest {
    void operator()(EVP_MD_CTX* digest) const noexcept { EVP_MD_CTX_free(digest); }
};

std::string to_hexadecimal(unsigned char const* bytes, unsigned size) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (unsigned i = 0; i < size; ++i) {
        text += digits[bytes[i] >> 4U];
        text += digits[bytes[i] & 15U];
    }
    return text;
}

}  // namespace

bool is_checksum(std::string_view etag) {
    return (etag.size() == sha256_digits || etag.size() == sha1_digits) &&
           std::ranges::all_of(
               etag, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool has_checksum(std::filesystem::path const& file, std::string_view checksum) {
    std::error_code failed;
    auto const size = std::filesystem::file_size(file, failed);
    std::ifstream in{file, std::ios::binary};
    std::unique_ptr<EVP_MD_CTX, FreeDigest> const digest{EVP_MD_CTX_new()};
    bool const git = checksum.size() == sha1_digits;
    if (failed || !in || !digest ||
        EVP_DigestInit_ex(digest.get(), git ? EVP_sha1() : EVP_sha256(), nullptr) != 1) {
        return false;
    }
    if (git) {  // git puts kind and size before the content
        auto const head = "blob " + std::to_string(size) + '\0';
        EVP_DigestUpdate(digest.get(), head.data(), head.size());
    }
    std::array<char, std::size_t{1} << 16U> buffer{};
    while (in.read(buffer.data(), buffer.size()) || in.gcount() > 0) {
        EVP_DigestUpdate(digest.get(), buffer.data(), static_cast<std::size_t>(in.gcount()));
    }
    std::array<unsigned char, EVP_MAX_MD_SIZE> value{};
    unsigned length = 0;
    EVP_DigestFinal_ex(digest.get(), value.data(), &length);
    return !in.bad() && to_hexadecimal(value.data(), length) == checksum;
}

}  // namespace tinkxx::text::files
