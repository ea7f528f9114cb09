#include "service/rest/content_range.hpp"

#include <tinkxx/error.hpp>

#include "base/common/ascii.hpp"
#include "base/common/descriptor.hpp"
#include "files/folder_writer.hpp"
#include "wire/json/base64.hpp"

#include <fcntl.h>
#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <vector>

namespace tinkxx::service {
namespace {

/// Takes a number off the front.
bool take_number(std::string_view& text, std::int64_t& out) {
    auto const read = std::from_chars(text.data(), text.data() + text.size(), out);
    if (read.ec != std::errc{} || out < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
    return true;
}

bool take_mark(std::string_view& text, char c) {
    if (!text.starts_with(c)) return false;
    text.remove_prefix(1);
    return true;
}

/// The value of an entry `NAME=VALUE` in a list, such as `sha-256=:abc=:`.
std::optional<std::string> list_entry(std::string const* list, std::string_view name) {
    if (list == nullptr) return std::nullopt;
    std::string_view rest{*list};
    while (!rest.empty()) {
        auto const comma = rest.find(',');
        auto const entry = base::trim(rest.substr(0, comma));
        rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
        if (entry.size() <= name.size() || entry[name.size()] != '=') continue;
        if (!base::equal_in_any_case(entry.substr(0, name.size()), name)) continue;
        auto value = entry.substr(name.size() + 1);
        if (value.size() >= 2 && value.front() == ':' && value.back() == ':') {
            value = value.substr(1, value.size() - 2);
        }
        return std::string{value};
    }
    return std::nullopt;
}

}  // namespace

std::optional<ContentRange> parse_content_range(std::string_view text) {
    constexpr std::string_view unit = "bytes ";
    ContentRange range;
    if (!text.starts_with(unit)) return std::nullopt;
    text.remove_prefix(unit.size());
    if (!take_number(text, range.first) || !take_mark(text, '-') ||
        !take_number(text, range.last) || !take_mark(text, '/') ||
        !take_number(text, range.total) || !text.empty() || range.last < range.first ||
        range.last >= range.total) {
        return std::nullopt;
    }
    return range;
}

std::string range_validator(Headers const& lines) {
    auto const* const tag = lines.find("ETag");
    if (tag != nullptr && tag->size() > 2 && tag->front() == '"') return *tag;
    auto const* const date = lines.find("Last-Modified");
    return date == nullptr ? std::string{} : *date;
}

std::optional<FileDigest> file_digest(Headers const& lines, bool whole) {
    using Kind = FileDigest::Kind;
    for (auto const* name : {"Repr-Digest", "Digest"}) {
        if (auto text = list_entry(lines.find(name), "sha-256")) {
            return FileDigest{Kind::sha256, *std::move(text)};
        }
    }
    // One that ends in a count of parts is not that of the file.
    auto const* const amazon = lines.find("x-amz-checksum-sha256");
    if (amazon != nullptr && amazon->find('-') == std::string::npos) {
        return FileDigest{Kind::sha256, *amazon};
    }
    if (auto text = list_entry(lines.find("x-goog-hash"), "md5")) {
        return FileDigest{Kind::md5, *std::move(text)};
    }
    auto const* const md5 = whole ? lines.find("Content-MD5") : nullptr;
    if (md5 != nullptr) return FileDigest{Kind::md5, *md5};
    return std::nullopt;
}

Result<void> check_digest(std::filesystem::path const& path, FileDigest const& digest) {
    base::Descriptor const file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!file) return files::file_error("open", path, errno);
    bool const sha = digest.kind == FileDigest::Kind::sha256;
    std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> const context{EVP_MD_CTX_new(),
                                                                          &EVP_MD_CTX_free};
    // Where MD5 is switched off, it cannot be checked.
    if (EVP_DigestInit_ex(context.get(), sha ? EVP_sha256() : EVP_md5(), nullptr) != 1) return {};
    std::vector<char> buffer(std::size_t{1} << 20U);
    for (;;) {
        auto const got = ::read(file.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return files::file_error("read", path, errno);
        if (got == 0) break;
        EVP_DigestUpdate(context.get(), buffer.data(), static_cast<std::size_t>(got));
    }
    std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
    unsigned size = 0;
    EVP_DigestFinal_ex(context.get(), sum.data(), &size);
    auto const ours = wire::base64({reinterpret_cast<char const*>(sum.data()), size});
    if (ours == digest.text) return {};
    return Error{{.kind = ErrorKind::validation,
                  .message = path.filename().string() + " has the checksum " + ours +
                             ", and its server says " + digest.text +
                             "; it may be corrupt, so fetch it again",
                  .field = path.filename().string(),
                  .value = ours}};
}

}  // namespace tinkxx::service
