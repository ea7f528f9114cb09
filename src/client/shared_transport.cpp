#include "client/shared_transport.hpp"

#include "base/runtime_core.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace tinkxx::client {
namespace {

/// The transports of one runtime that are in use. Weak, so it keeps none.
class SharedTransports {
public:
    std::shared_ptr<Transport> get(Runtime const& runtime, TransportKey key) {
        std::scoped_lock const lock{mutex_};
        std::erase_if(known_, [](Known const& each) { return each.transport.expired(); });
        auto const found = std::ranges::find(known_, key, &Known::key);
        if (found != known_.end()) {
            if (auto transport = found->transport.lock()) return transport;
            known_.erase(found);
        }
        auto made = net_transport(runtime, key.net);
        known_.push_back({.key = std::move(key), .transport = made});
        return made;
    }

private:
    struct Known {
        TransportKey key{};
        std::weak_ptr<Transport> transport{};
    };

    std::mutex mutex_{};
    std::vector<Known> known_{};  // guarded by mutex_
};

}  // namespace

TransportKey transport_key(ResolvedOptions const& resolved, service::SessionConfig const& config) {
    return {.net = resolved.net,
            .endpoint = config.http.endpoint.key(),
            .credentials = config.credentials};
}

std::shared_ptr<Transport> shared_transport(Runtime const& runtime, TransportKey key) {
    return runtime.core()->common<SharedTransports>()->get(runtime, std::move(key));
}

}  // namespace tinkxx::client
