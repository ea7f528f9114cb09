#include "base/common/forever.hpp"
#include "base/common/fork.hpp"
#include "client/options/resolved_options.hpp"

#include <mutex>
#include <utility>
#include <variant>

namespace tinkxx {

namespace {

struct Defaults {
    std::mutex mutex{};
    ClientOptions options{};
};

Defaults& defaults() {
    // Never destroyed: clients with static storage may be built at any time.
    static base::Forever<Defaults> only;
    static bool const held =
        (base::hold_while_forking(base::ProcessLock::default_options, only.get().mutex), true);
    (void)held;
    return only.get();
}

}  // namespace

void set_default_options(ClientOptions options) {
    auto& slot = defaults();
    std::scoped_lock const lock{slot.mutex};
    std::swap(slot.options, options);  // the old ones, and what they hold, go after the lock
}

ClientOptions default_options() {
    auto& slot = defaults();
    std::scoped_lock const lock{slot.mutex};
    return slot.options;
}

namespace client {

ClientOptions with_defaults(ClientOptions options) {
    return merged(std::move(options), default_options());
}

ClientOptions merged(ClientOptions options, ClientOptions const& defaults) {
    using Options = ClientOptions;
    Options const untouched;
    auto const take_if = [&](auto const& is_left, auto... members) {
        auto const take = [&](auto m) {
            if (is_left(m)) options.*m = defaults.*m;
        };
        (take(members), ...);
    };
    auto const unless_changed = [&](auto... members) {
        take_if([&](auto m) { return options.*m == untouched.*m; }, members...);
    };
    auto const unless_empty = [&](auto... members) {
        take_if([&](auto m) { return (options.*m).empty(); }, members...);
    };
    auto const unless_set = [&](auto... members) {
        take_if([&](auto m) { return !(options.*m); }, members...);
    };
    unless_empty(&Options::base_url, &Options::api_key, &Options::default_headers,
                 &Options::default_query, &Options::proxy, &Options::proxy_headers,
                 &Options::no_proxy, &Options::observers, &Options::metadata, &Options::sdk_version,
                 &Options::user_metadata, &Options::tags, &Options::project_id,
                 &Options::display_name, &Options::credential_cmd, &Options::credentials_file,
                 &Options::cloudflare_access_id, &Options::cloudflare_access_secret);
    unless_changed(&Options::timeouts, &Options::max_retries, &Options::net, &Options::dispatch,
                   &Options::chunks, &Options::deadline, &Options::max_pending,
                   &Options::report_pending, &Options::warn_of_stalls, &Options::intervals,
                   &Options::check_data);
    unless_set(&Options::dump_headers, &Options::otel_propagate, &Options::trace_propagator,
               &Options::log, &Options::log_level, &Options::tokenizers, &Options::transport,
               &Options::runtime, &Options::telemetry, &Options::poll_error_limit,
               &Options::completion_poll, &Options::join_sampling_session, &Options::download_bytes,
               &Options::submit_encoding, &Options::repeat_steps);
    if (std::holds_alternative<NoPollBackoff>(options.poll_backoff)) {
        options.poll_backoff = defaults.poll_backoff;
    }
    return options;
}

}  // namespace client

}  // namespace tinkxx
