#include "client/make_core.hpp"

#include "base/runtime_core.hpp"
#include "service/session/shadow.hpp"
#include "wire/training/training.hpp"

#include <algorithm>
#include <cstdio>
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

void write_pending_line(std::string const& line) {
    // One call, so that lines of several threads do not mix.
    auto const text = "tinkxx: " + line + '\n';
    (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

TransportKey transport_key(ResolvedOptions const& resolved, service::SessionConfig const& config) {
    return {.net = resolved.net,
            .endpoint = config.http.endpoint.key(),
            .credentials = config.credentials};
}

std::shared_ptr<Transport> shared_transport(Runtime const& runtime, TransportKey key) {
    return runtime.core()->common<SharedTransports>()->get(runtime, std::move(key));
}

std::shared_ptr<service::ClientCore> make_core(
    Runtime const& runtime, service::SessionConfig const& config, ResolvedOptions const& options,
    service::SessionKind kind, std::shared_ptr<Transport> const& transport,
    std::optional<service::SessionSnapshot> const& snapshot, service::PendingList::Ids ids) {
    service::CoreSettings settings;
    settings.count = options.dispatch.count;
    settings.throttled = options.dispatch.throttled;
    settings.poll_backoff = options.poll_backoff;
    settings.poll_error_limit = options.poll_error_limit;
    settings.deadline = options.deadline;
    if (options.when_full != WhenFull::ignore) settings.max_pending = options.max_pending;
    if (options.when_full == WhenFull::reject) {
        settings.when_full = service::PendingBound::WhenFull::reject;
    }
    if (options.report_pending) settings.report = write_pending_line;
    settings.warn_of_stalls = options.warn_of_stalls;
    if (options.submit_encoding) {
        settings.submit_encoding = *options.submit_encoding == SubmitEncoding::json
                                       ? wire::Encoding::json
                                       : wire::Encoding::protobuf;
    }
    settings.repeat_steps = options.repeat_steps;
    settings.check_data = options.check_data;
    settings.ids = std::move(ids);
    // Without threads nobody would be left to run the calls that keep it.
    if (!runtime.core()->zero_thread()) settings.runtime = runtime;
    auto const make = [&] {
        return std::make_shared<service::Session>(config, kind, runtime.core(), transport,
                                                  snapshot);
    };
    auto session = kind == service::SessionKind::shadow
                       ? service::shared_shadow(*runtime.core(), snapshot->session_id, config, make)
                       : make();
    return service::ClientCore::make(std::move(session), std::move(settings));
}

}  // namespace tinkxx::client
