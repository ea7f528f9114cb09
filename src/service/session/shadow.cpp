#include "service/session/shadow.hpp"

#include "base/common/forever.hpp"
#include "base/common/fork.hpp"

#include <map>
#include <mutex>
#include <tuple>
#include <utility>

namespace tinkxx::service {

namespace {

using Key = std::tuple<detail::RuntimeCore const*, std::string, std::string>;

/// Weak, so it keeps nothing alive. A runtime's address is not used twice while a share exists: the
/// session behind that holds the runtime.
struct Shadows {
    std::mutex mutex{};
    std::map<Key, std::weak_ptr<Session>> shares{};
};

Shadows& shadows() {
    // Never destroyed: clients with static storage may go away at any time.
    static base::Forever<Shadows> only;
    static bool const held =
        (base::hold_while_forking(base::ProcessLock::shadows, only.get().mutex), true);
    (void)held;
    return only.get();
}

void append(std::string& text, std::string_view part) {
    text += std::to_string(part.size());
    text += ':';
    text += part;
}

template <class Duration>
void append_time(std::string& text, Duration time) {
    append(text, std::to_string(time.count()));
}

template <class T>
void append_choice(std::string& text, std::optional<T> const& choice) {
    append(text, choice ? std::to_string(*choice) : "-");
}

}  // namespace

std::string canonical_text(ClientConfig const& config) {
    std::string text;
    append(text, config.endpoint.key());
    append(text, config.credentials.api_key);
    append(text, config.credentials.command);
    append(text, config.credentials.stored);
    append(text, config.sdk_version);
    for (auto const& [name, value] : config.headers) {
        append(text, name);
        append(text, value);
    }
    append(text, config.url(""));
    auto const& timeouts = config.timeouts;
    for (auto const limit :
         {timeouts.connect, timeouts.read, timeouts.write, timeouts.pool, timeouts.total}) {
        append_time(text, limit);
    }
    append(text, std::to_string(config.max_retries));
    append_choice(text, config.dispatch.bytes);
    append_choice(text, config.download_bytes);
    append_choice(text, config.completion_poll);
    append_choice(text, config.join_sampling_session);
    auto const& intervals = config.intervals;
    append_time(text, intervals.heartbeat);
    append_time(text, intervals.heartbeat_warning);
    append(text, std::to_string(intervals.heartbeat_max_failures));
    append_time(text, intervals.heartbeat_max_silence);
    append_time(text, intervals.dynamic_refresh_minimum);
    append_time(text, intervals.telemetry_flush);
    append_time(text, intervals.telemetry_drain);
    append(text, config.telemetry.value_or(true) ? "1" : "0");
    return text;
}

std::shared_ptr<Session> shared_shadow(detail::RuntimeCore const& runtime,
                                       std::string_view session_id, ClientConfig const& config,
                                       std::function<std::shared_ptr<Session>()> const& make) {
    auto& all = shadows();
    Key key{&runtime, std::string{session_id}, canonical_text(config)};
    std::shared_ptr<Session> share;  // before the lock: should it be the last, it closes after it
    std::scoped_lock const lock{all.mutex};
    std::erase_if(all.shares, [](auto const& entry) { return entry.second.expired(); });
    share = all.shares[key].lock();
    if (share) return share;
    auto session = make();
    auto* const shadow = session.get();
    share = std::shared_ptr<Session>{
        shadow, [session](Session* /*same*/) {
            auto& runtime_of = session->http().runtime();
            if (runtime_of.shut_down()) return;  // told by that itself
            runtime_of.scheduler().post([session] { session->close({}, {}); });
        }};
    all.shares[key] = share;
    return share;
}

}  // namespace tinkxx::service
