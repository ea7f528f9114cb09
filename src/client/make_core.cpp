#include "client/make_core.hpp"

#include "service/session/shadow.hpp"
#include "wire/training.hpp"

#include <cstdio>
#include <utility>

namespace tinkxx::client {
namespace {

void write_line(std::string const& line) {
    // One call, so that lines of several threads do not mix.
    auto const text = "tinkxx: " + line + '\n';
    (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace

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
    if (options.report_pending) settings.report = write_line;
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
