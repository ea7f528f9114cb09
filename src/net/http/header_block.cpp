#include "net/http/header_block.hpp"

#include "base/common/ascii.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace tinkxx::net {
namespace {

template <std::size_t N>
bool is_one_of(std::string_view name, std::array<std::string_view, N> const& names) noexcept {
    return std::any_of(names.begin(), names.end(),
                       [&](auto candidate) { return base::equal_in_any_case(name, candidate); });
}

// What each byte may be part of.
constexpr std::uint8_t in_name = 1;
constexpr std::uint8_t in_value = 2;
constexpr auto allowed = [] {
    std::array<std::uint8_t, 256> table{};
    for (unsigned c = 0; c < 256; ++c) {
        if (c == '\t' || (c >= 0x20 && c != 0x7f)) table[c] |= in_value;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) {
            table[c] |= in_name;
        }
    }
    for (char const c : std::string_view{"!#$%&'*+-.^_`|~"}) {
        table[static_cast<unsigned char>(c)] |= in_name;
    }
    return table;
}();

bool all_allowed(std::string_view text, std::uint8_t where) noexcept {
    std::uint8_t all = where;
    for (char const c : text) all &= allowed[static_cast<unsigned char>(c)];
    return all == where;
}

}  // namespace

bool is_credential(std::string_view name) noexcept {
    static constexpr std::array<std::string_view, 7> names{
        "x-api-key",           "authorization",           "proxy-authorization",          "cookie",
        "cf-access-client-id", "cf-access-client-secret", "x-tinker-weights-access-token"};
    return is_one_of(name, names);
}

bool is_transport_header(std::string_view name) noexcept {
    static constexpr std::array<std::string_view, 7> names{
        "host",    "content-length",   "connection", "keep-alive", "proxy-connection",
        "upgrade", "transfer-encoding"};
    return is_one_of(name, names);
}

std::string header_problem(Headers const& headers) {
    for (auto const& [name, value] : headers) {
        if (name.empty()) return "a header has an empty name";
        if (!all_allowed(name, in_name)) {
            return "the header name \"" + name + "\" holds a character that is not allowed there";
        }
        if (!all_allowed(value, in_value)) {
            return "the value of header \"" + name + "\" holds a control character";
        }
    }
    return {};
}

std::shared_ptr<PreparedHeaders const> prepare_headers(std::shared_ptr<Headers const> headers) {
    auto prepared = std::make_shared<PreparedHeaders>();
    prepared->problem = header_problem(*headers);
    prepared->names.reserve(headers->size());
    prepared->http2.reserve(headers->size());
    for (auto const& [name, value] : *headers) {
        if (is_transport_header(name)) continue;
        prepared->http1.append(name).append(": ").append(value).append("\r\n");
        auto& small = prepared->names.emplace_back(base::ascii_lower(name));
        if (small == "accept-encoding") prepared->has_accept_encoding = true;
        std::uint8_t flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;
        if (is_credential(small)) flags |= NGHTTP2_NV_FLAG_NO_INDEX;
        // nghttp2 takes pointers to non-const but never writes through them.
        prepared->http2.push_back({reinterpret_cast<std::uint8_t*>(small.data()),
                                   reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())),
                                   small.size(), value.size(), flags});
    }
    prepared->source = std::move(headers);
    return prepared;
}

std::shared_ptr<PreparedHeaders const> HeaderCache::get(
    std::shared_ptr<Headers const> const& headers) {
    if (headers == nullptr) return nullptr;
    for (auto const& entry : entries_) {
        if (entry->source == headers) return entry;
    }
    auto prepared = prepare_headers(headers);
    if (entries_.size() < capacity) {
        entries_.push_back(prepared);
    } else {
        entries_[oldest_] = prepared;
        oldest_ = (oldest_ + 1) % capacity;
    }
    return prepared;
}

}  // namespace tinkxx::net
