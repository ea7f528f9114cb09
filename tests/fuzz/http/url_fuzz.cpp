// URLs of requests, of Location headers, of proxies, and NO_PROXY lists.
#include "net/address/proxy.hpp"
#include "net/address/url.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

void require(bool good) {
    if (!good) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace tinkxx::net;
    std::string_view const text{reinterpret_cast<char const*>(data), size};

    if (auto const url = parse_url(text)) {
        require(!url->origin.host.empty() && url->origin.port != 0);
        require(url->target.starts_with('/'));
        auto const again =
            (url->origin.tls ? "https://" : "http://") + url->origin.authority() + url->target;
        auto const parsed = parse_url(again);
        require(parsed && parsed->origin == url->origin && parsed->target == url->target);
        require(resolve_reference(text, "../x?y").has_value());
    }
    if (auto const resolved = resolve_reference("https://host:81/a/b?c", text)) {
        for (auto const c : *resolved) require(c > ' ' && c < 0x7f);
    }
    for (auto const c : url_for_message(text)) {
        require(static_cast<unsigned char>(c) >= ' ' && c != 0x7f);
    }
    if (auto const proxy = parse_proxy_url(text)) {
        auto const head = connect_head(*proxy, {}, "host", 1);
        require(head.find("\r\n\r\n") == head.size() - 4);
        require(proxy->port != 0 && !proxy->host.empty());
    }
    NoProxy const rules{text};
    (void)rules.matches("some.host", 443);
    (void)rules.matches("10.1.2.3", 443);
    (void)rules.matches("2001:db8::1", 443);
    (void)rules.matches(text.substr(0, 40), 443);
    return 0;
}
