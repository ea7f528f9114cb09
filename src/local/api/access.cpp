#include "local/api/access.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

namespace tinkxx::local {

namespace {

std::string lower(std::string_view text) {
    std::string out{text};
    std::ranges::transform(out, out.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return out;
}

/// The host of `host[:port]`, with the brackets of an IPv6 address taken off.
std::string host_of(std::string_view authority) {
    if (authority.starts_with('[')) {
        return lower(authority.substr(1, authority.find(']') - 1));
    }
    return lower(authority.substr(0, authority.find(':')));
}

/// Whether nobody can have made a name lead here: an address is no name, and names of loopback are
/// not looked up.
bool is_own(std::string const& host) {
    in6_addr address{};
    return host == "localhost" || host.ends_with(".localhost") ||
           ::inet_pton(AF_INET, host.c_str(), &address) == 1 ||
           ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

}  // namespace

bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept {
    // Only the length may show.
    if (a.size() != b.size()) return false;
    unsigned difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        difference |= static_cast<unsigned>(a[i] ^ b[i]);
    }
    return difference == 0;
}

std::optional<Forbidden> forbidden(AccessRules const& rules, ServerRequest const& request,
                                   bool needs_key) {
    auto const header = [&](std::string_view name) {
        auto const* const found = request.headers.find(name);
        return found == nullptr ? std::string_view{} : std::string_view{*found};
    };
    auto const authority = header("Host");
    auto const host = host_of(authority);
    auto const listed = [&](std::string const& name) {
        return is_own(name) || std::ranges::any_of(rules.hosts, [&](auto const& one) {
                   return lower(one) == name;
               });
    };
    // Without a key, the name by which a browser came is all that tells a page of one's own from
    // one that had its name resolve to this machine.
    if (rules.api_key.empty() && !authority.empty() && !listed(host)) {
        return Forbidden{403,
                         "the host " + host.substr(0, 100) +
                             " is not one of this server's; use its address or localhost, name "
                             "it as a host of the server (--allow-host), or set an API key"};
    }
    auto const origin = header("Origin");
    if (!origin.empty()) {
        auto const start = origin.find("://");
        auto const from =
            start == std::string_view::npos ? std::string_view{} : origin.substr(start + 3);
        if (lower(from) != lower(authority)) {
            return Forbidden{403, "a page of " + std::string{origin.substr(0, 100)} +
                                      " must not use this server; only its own pages may"};
        }
    }
    auto const site = header("Sec-Fetch-Site");
    if (site == "cross-site" || site == "same-site") {
        return Forbidden{403, "a page from elsewhere must not use this server"};
    }
    if (needs_key && !rules.api_key.empty()) {
        auto key = header("X-API-Key");
        constexpr std::string_view bearer = "Bearer ";
        if (key.empty() && header("Authorization").starts_with(bearer)) {
            key = header("Authorization").substr(bearer.size());
        }
        if (!equal_in_constant_time(key, rules.api_key)) {
            return Forbidden{401, key.empty() ? "this server wants an API key; set TINKER_API_KEY"
                                              : "the API key is not the one of this server; check "
                                                "TINKER_API_KEY"};
        }
    }
    return std::nullopt;
}

}  // namespace tinkxx::local
