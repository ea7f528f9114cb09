#include "client/options/make_core.hpp"

#include "base/runtime/runtime_core.hpp"
#include "service/session/shadow.hpp"

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

TransportKey transport_key(service::ClientConfig const& config) {
    return {
        .net = config.net, .endpoint = config.endpoint.key(), .credentials = config.credentials};
}

std::shared_ptr<Transport> shared_transport(Runtime const& runtime, TransportKey key) {
    return runtime.core()->common<SharedTransports>()->get(runtime, std::move(key));
}

std::shared_ptr<service::ClientCore> make_core(
    Runtime const& runtime, std::shared_ptr<service::ClientConfig const> config,
    service::SessionKind kind, std::shared_ptr<Transport> const& transport,
    std::optional<service::SessionSnapshot> const& snapshot, service::PendingList::Ids ids) {
    auto const make = [&] {
        return std::make_shared<service::Session>(config, kind, runtime.core(), transport,
                                                  snapshot);
    };
    auto session =
        kind == service::SessionKind::shadow
            ? service::shared_shadow(*runtime.core(), snapshot->session_id, *config, make)
            : make();
    // Without threads nobody would be left to run the calls that keep it.
    auto kept = runtime.core()->zero_thread() ? std::nullopt : std::optional{runtime};
    return service::ClientCore::make(std::move(session), std::move(config), std::move(ids),
                                     std::move(kept));
}

}  // namespace tinkxx::client
