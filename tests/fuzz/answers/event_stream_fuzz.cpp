// An event stream from a server: the same events, however its bytes are cut.
#include "wire/sampling/event_stream.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace tinkxx::wire;
    if (size == 0) return 0;
    std::string_view const bytes{reinterpret_cast<char const*>(data) + 1, size - 1};
    std::size_t const step = 1 + data[0] % 7U;

    EventStream whole;
    auto const events = whole.feed(bytes).value();
    EventStream cut;
    std::vector<ServerEvent> pieces;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
        auto some = cut.feed(bytes.substr(at, step)).value();
        std::ranges::move(some, std::back_inserter(pieces));
    }
    if (events.size() != pieces.size()) std::abort();
    for (std::size_t i = 0; i < events.size(); ++i) {
        if (events[i].data != pieces[i].data || events[i].event != pieces[i].event ||
            events[i].id != pieces[i].id || events[i].retry != pieces[i].retry) {
            std::abort();
        }
        (void)decode_sample_chunk(events[i].data);
    }
    return 0;
}
