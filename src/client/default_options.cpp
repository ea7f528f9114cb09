#include "base/common/forever.hpp"
#include "base/common/fork.hpp"
#include "client/resolved_options.hpp"

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
    ClientOptions const untouched;
    auto const unless_changed = [&](auto member) {
        if (options.*member == untouched.*member) options.*member = defaults.*member;
    };
    auto const unless_empty = [&](auto member) {
        if ((options.*member).empty()) options.*member = defaults.*member;
    };
    auto const unless_set = [&](auto member) {
        if (!(options.*member)) options.*member = defaults.*member;
    };
    unless_empty(&ClientOptions::base_url);
    unless_empty(&ClientOptions::api_key);
    unless_changed(&ClientOptions::timeouts);
    unless_changed(&ClientOptions::max_retries);
    unless_empty(&ClientOptions::default_headers);
    unless_empty(&ClientOptions::default_query);
    unless_empty(&ClientOptions::proxy);
    unless_empty(&ClientOptions::proxy_headers);
    unless_empty(&ClientOptions::no_proxy);
    unless_set(&ClientOptions::dump_headers);
    unless_set(&ClientOptions::otel_propagate);
    unless_set(&ClientOptions::trace_propagator);
    unless_empty(&ClientOptions::observers);
    unless_empty(&ClientOptions::metadata);
    unless_set(&ClientOptions::log);
    unless_set(&ClientOptions::log_level);
    unless_empty(&ClientOptions::sdk_version);
    unless_changed(&ClientOptions::net);
    unless_set(&ClientOptions::tokenizers);
    unless_set(&ClientOptions::transport);
    unless_set(&ClientOptions::runtime);
    unless_empty(&ClientOptions::user_metadata);
    unless_empty(&ClientOptions::tags);
    unless_empty(&ClientOptions::project_id);
    unless_empty(&ClientOptions::display_name);
    unless_empty(&ClientOptions::feature_gates);
    unless_set(&ClientOptions::telemetry);
    unless_empty(&ClientOptions::credential_cmd);
    unless_empty(&ClientOptions::credentials_file);
    unless_changed(&ClientOptions::subprocess_sampling);
    if (std::holds_alternative<NoPollBackoff>(options.poll_backoff)) {
        options.poll_backoff = defaults.poll_backoff;
    }
    unless_set(&ClientOptions::poll_error_limit);
    unless_empty(&ClientOptions::cloudflare_access_id);
    unless_empty(&ClientOptions::cloudflare_access_secret);
    unless_set(&ClientOptions::completion_poll);
    unless_set(&ClientOptions::join_sampling_session);
    unless_changed(&ClientOptions::dispatch);
    unless_set(&ClientOptions::download_bytes);
    unless_changed(&ClientOptions::chunks);
    unless_changed(&ClientOptions::deadline);
    unless_changed(&ClientOptions::max_pending);
    unless_changed(&ClientOptions::when_full);
    unless_changed(&ClientOptions::report_pending);
    unless_changed(&ClientOptions::warn_of_stalls);
    unless_changed(&ClientOptions::intervals);
    unless_set(&ClientOptions::submit_encoding);
    unless_set(&ClientOptions::repeat_steps);
    unless_changed(&ClientOptions::check_data);
    return options;
}

}  // namespace client

}  // namespace tinkxx
