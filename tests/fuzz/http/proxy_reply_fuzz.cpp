// Answers of a proxy to CONNECT. The first byte is the size of the pieces that they come in,
// which must make no difference.
#include "net/address/proxy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

namespace {

using tinkxx::net::ProxyReply;

struct Outcome {
    ProxyReply::Step step{ProxyReply::Step::more};
    std::size_t used{0};
    int status{0};

    bool operator==(Outcome const&) const = default;
};

Outcome feed(std::span<char const> bytes, std::size_t chunk) {
    ProxyReply reply;
    Outcome outcome;
    while (outcome.used < bytes.size() && outcome.step == ProxyReply::Step::more) {
        std::size_t used = 0;
        auto const rest = bytes.subspan(outcome.used);
        outcome.step = reply.feed(rest.first(std::min(chunk, rest.size())), used);
        outcome.used += used;
    }
    if (outcome.step == ProxyReply::Step::done) {
        outcome.status = reply.status();
        if (outcome.status < 200 || outcome.status > 999) std::abort();
        for (auto const c : reply.reason()) {
            if (c < ' ' || c > '~') std::abort();
        }
    }
    if ((outcome.step == ProxyReply::Step::error) == reply.error_text().empty()) std::abort();
    if (outcome.used > ProxyReply::max_bytes + 1) std::abort();
    return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    if (size == 0) return 0;
    std::span<char const> const bytes{reinterpret_cast<char const*>(data) + 1, size - 1};
    if (feed(bytes, std::size_t{1} + data[0]) != feed(bytes, size)) std::abort();
    return 0;
}
