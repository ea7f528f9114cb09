#include "service/telemetry/telemetry_reporter.hpp"

#include "base/loop/loop_rule.hpp"
#include "service/common/uuid.hpp"
#include "service/http/standard_headers.hpp"
#include "service/retry/user_error.hpp"
#include "service/telemetry/error_text.hpp"
#include "service/telemetry/process_uuid.hpp"

#include <boost/json/parse.hpp>

#include <algorithm>
#include <utility>

namespace tinkxx::service {

namespace {

namespace json = boost::json;

constexpr std::chrono::seconds send_timeout{5};
// What a user's exception says can be of any length.
constexpr std::size_t most_text = 4096;

std::string cut(std::string text) {
    if (text.size() > most_text) text.resize(most_text);
    return text;
}

json::string text_value(std::string_view text) { return json::string{text.data(), text.size()}; }

json::value body_value(std::string_view text) {
    if (text.empty()) return nullptr;
    boost::system::error_code error;
    auto parsed = json::parse({text.data(), text.size()}, error);
    if (!error) return parsed;
    return text_value(text);
}

/// What led to an error, in place of a stack: C++ has none to show.
std::optional<std::string> causes(Error const& error, Scrubber const& scrubber) {
    auto const text = error_causes(error);
    if (text.empty()) return std::nullopt;
    return scrubber.scrub(text);
}

}  // namespace

TelemetryReporter::TelemetryReporter(HttpContext& context, TelemetryOptions options)
    : context_{context},
      pid_{options.pid ? std::move(options.pid) : [] { return current_pid(); }},
      sdk_version_{options.sdk_version.empty() ? std::string{parity_version}
                                               : std::move(options.sdk_version)},
      has_session_{!options.session_id.empty()},
      started_{context.scheduler().now()},
      random_{context.scheduler().entropy("telemetry")},
      random_pid_{pid_()},
      session_id_{has_session_ ? std::move(options.session_id)
                               : "sessionless-" + random_uuid(random_)},
      queue_{options.rules},
      call_{context, *this} {}

TelemetryReporter::~TelemetryReporter() = default;

/// Telemetry must not fail those who report (R-TEL-23), whatever happens here.
template <class Fn>
void TelemetryReporter::guarded(Fn fn) noexcept {
    try {
        fn();
    } catch (std::exception const& error) {
        try {
            context_.log(LogLevel::warning, std::string{"telemetry: "} + error.what());
        } catch (...) {  // not even that: then in silence
        }
    } catch (...) {  // nothing that could be named
    }
}

wire::TelemetryEvent TelemetryReporter::make(What what, Severity severity) {
    if (auto const pid = pid_(); pid != random_pid_) {  // a child must not draw its parent's ids
        random_ = Random{random_.next() ^ base::mix(static_cast<std::uint64_t>(pid))};
        random_pid_ = pid;
    }
    return {.what = std::move(what),
            .event_id = random_uuid(random_),
            .event_session_index = next_index_++,
            .severity = severity,
            .timestamp = scheduler().wall()};
}

wire::TelemetryEvent TelemetryReporter::make_error(Error const& error) {
    auto const& scrubber = context_.config().scrubber;
    auto const user = find_user_error(error);
    if (!user) {
        return make(
            wire::telemetry_event::UnhandledException{
                .error_type = std::string{error_type(error)},
                .error_message = cut(scrubber.scrub(error.what())),
                .traceback = causes(error, scrubber)},
            Severity::error);
    }
    json::object data;
    data["error_type"] = text_value(error_type(*user));
    data["message"] = text_value(cut(scrubber.scrub(user->what())));
    if (auto const status = user->http_status()) data["status_code"] = *status;
    if (!user->body().empty()) data["body"] = body_value(scrubber.scrub(user->body()));
    return make(wire::telemetry_event::Generic{.name = "user_error", .data = std::move(data)},
                Severity::warning);
}

bool TelemetryReporter::add(std::vector<wire::TelemetryEvent> group) {
    auto added = queue_.add(std::move(group), scheduler().now());
    follow(std::move(added.step));
    return added.queued;
}

void TelemetryReporter::start() {
    TINKXX_ASSERT_LOOP(scheduler());
    if (session_started_ || !has_session_) return;
    session_started_ = true;
    guarded([this] {
        std::vector<wire::TelemetryEvent> group;
        group.push_back(make(wire::telemetry_event::SessionStart{}, Severity::info));
        (void)add(std::move(group));
    });
}

void TelemetryReporter::event(std::string_view name, Severity severity, json::object data) {
    (void)log(name, severity, std::move(data));
}

bool TelemetryReporter::log(std::string_view name, Severity severity, json::object data) {
    TINKXX_ASSERT_LOOP(scheduler());
    bool queued = false;
    guarded([&] {
        std::vector<wire::TelemetryEvent> group;
        group.push_back(
            make(wire::telemetry_event::Generic{.name = std::string{name}, .data = std::move(data)},
                 severity));
        queued = add(std::move(group));
    });
    return queued;
}

// An error, if there is one, and the end of the session, if that is still to be told.
bool TelemetryReporter::add_fatal(std::optional<Error> const& error) {
    std::vector<wire::TelemetryEvent> group;
    if (error) group.push_back(make_error(*error));
    bool const ends = has_session_ && !session_ended_;
    if (ends) {
        auto const lasted =
            std::chrono::floor<std::chrono::microseconds>(scheduler().now() - started_);
        group.push_back(
            make(wire::telemetry_event::SessionEnd{.duration = lasted}, Severity::info));
    }
    if (group.empty() || !add(std::move(group))) return false;
    session_ended_ = session_ended_ || ends;
    return true;
}

void TelemetryReporter::capture(Error const& error) {
    TINKXX_ASSERT_LOOP(scheduler());
    if (error.kind() == ErrorKind::cancelled) return;
    guarded([&] {
        bool const queued = add_fatal(error);
        flush();
        // Calls that fail together are named together: one line tells of them all.
        if (!queued || naming_session_) return;
        naming_session_ = true;
        flush_then(scheduler().now() + capture_drain, [this](bool /*drained*/) {
            naming_session_ = false;
            context_.log(LogLevel::info,
                         "telemetry: an error was reported for session " + session_id_);
        });
    });
}

void TelemetryReporter::note(Error const& error) {
    TINKXX_ASSERT_LOOP(scheduler());
    if (error.kind() == ErrorKind::cancelled) return;
    guarded([&] {
        std::vector<wire::TelemetryEvent> group;
        group.push_back(make_error(error));
        (void)add(std::move(group));
        flush();
    });
}

void TelemetryReporter::flush() {
    guarded([this] { follow(queue_.flush()); });
}

void TelemetryReporter::follow(TelemetryQueue::Step step) {
    for (;;) {
        if (!step.warning.empty()) context_.log(LogLevel::warning, std::move(step.warning));
        if (step.next == TelemetryQueue::Next::wait) {
            scheduler().arm(*this, scheduler().now() + step.delay, Precision::exact);
        }
        if (step.next != TelemetryQueue::Next::send) break;
        scheduler().disarm(*this);
        try {
            send();
            break;
        } catch (std::exception const& error) {
            call_.cancel();
            ErrorDetails details;
            details.kind = ErrorKind::usage;
            details.message = std::string{"POST /api/v1/telemetry: "} + error.what();
            step = queue_.on_failure(Error{std::move(details)}, scheduler().now());
        }
    }
    watch_drains();
}

void TelemetryReporter::send() {
    static constexpr std::string_view path = "/api/v1/telemetry";
    auto const& config = context_.config();
    HttpOrder order;
    order.operation.method = "POST";
    order.operation.path = path;
    order.url = config.url(path);
    order.common_headers = context_.json_headers();
    order.body.head = std::make_shared<std::string const>(
        wire::encode_telemetry({.events = queue_.batch(),
                                .platform = platform_name(),
                                .sdk_version = sdk_version_,
                                .session_id = session_id_,
                                .process_uuid = process_uuid(pid_(), scheduler())}));
    order.purpose = Purpose::telemetry;
    order.timeouts = {
        .connect = send_timeout, .read = send_timeout, .write = send_timeout, .pool = send_timeout};
    order.max_retries = config.max_retries;
    call_.start(std::move(order));
}

void TelemetryReporter::on_response(HttpResponse /*response*/) {
    // What it says is of no interest: the service has them now.
    guarded([this] { follow(queue_.on_accepted()); });
}

void TelemetryReporter::on_error(Error error) {
    if (error.kind() == ErrorKind::cancelled || error.kind() == ErrorKind::closed) {
        stop();  // the client or its runtime went away
        return watch_drains();
    }
    guarded([&] { follow(queue_.on_failure(error, scheduler().now())); });
}

void TelemetryReporter::on_time() {
    guarded([this] { follow(queue_.on_time()); });
}

void TelemetryReporter::flush_then(TimePoint deadline, Drained done) {
    TINKXX_ASSERT_LOOP(scheduler());
    drains_.waiting.push_back(
        {.target = queue_.counts().logged, .deadline = deadline, .done = std::move(done)});
    flush();
    watch_drains();
}

// Ends of drains always come from a timer, so that whoever waits may destroy the reporter.
void TelemetryReporter::watch_drains() noexcept {
    if (drains_.waiting.empty()) return scheduler().disarm(drains_);
    auto const now = scheduler().now();
    auto when = TimePoint::max();
    for (auto const& drain : drains_.waiting) {
        bool const over = queue_.stopped() || queue_.counts().flushed >= drain.target;
        when = std::min(when, over ? now : drain.deadline);
    }
    scheduler().arm(drains_, when, Precision::exact);
}

void TelemetryReporter::end_drains() {
    auto const now = scheduler().now();
    auto const flushed = queue_.counts().flushed;
    auto const over = [&](Drain const& drain) {
        return queue_.stopped() || flushed >= drain.target || now >= drain.deadline;
    };
    auto const first = std::ranges::stable_partition(
        drains_.waiting, [&](Drain const& drain) { return !over(drain); });
    std::vector<Drain> ended{std::move_iterator{first.begin()}, std::move_iterator{first.end()}};
    drains_.waiting.erase(first.begin(), first.end());
    watch_drains();
    base::DestructionFlag::Watch const watch{destroyed_};
    for (auto& drain : ended) {
        drain.done(flushed >= drain.target);
        if (watch.destroyed()) return;
    }
}

void TelemetryReporter::close(TimePoint deadline, Drained done) {
    TINKXX_ASSERT_LOOP(scheduler());
    if (!std::exchange(closing_, true)) {
        guarded([this] { (void)add_fatal(std::nullopt); });
    }
    flush_then(deadline, [this, done = std::move(done)](bool drained) mutable {
        auto const left = queue_.waiting().size() + queue_.batch().size();
        if (left > 0) {
            guarded([&] {
                context_.log(LogLevel::warning, "telemetry: closed before " + std::to_string(left) +
                                                    " of its events were sent");
            });
        }
        stop();
        if (done) done(drained);
    });
}

void TelemetryReporter::stop() noexcept {
    call_.cancel();
    scheduler().disarm(*this);
    queue_.stop();
}

}  // namespace tinkxx::service
