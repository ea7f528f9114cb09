#include <tinkxx/status.hpp>

#include <array>
#include <charconv>
#include <string>

namespace tinkxx {
namespace {

constexpr std::array<std::string_view, 17> names{
    "starting",
    "creating its sampler",
    "waiting for a slot",
    "waiting to be submitted",
    "throttled",
    "waiting for bytes",
    "encoding",
    "backing off",
    "paused for billing",
    "submitting",
    "waiting to submit again",
    "waiting for completion",
    "waiting to download",
    "polling",
    "waiting to poll",
    "decoding",
    "waiting to retry",
};

/// `1.2 s`, `14 s`, `3 min`.
std::string span_text(std::chrono::nanoseconds span) {
    using Seconds = std::chrono::duration<double>;
    auto const seconds = std::max(0.0, Seconds{span}.count());
    std::array<char, 32> text{};
    auto const write = [&](double value, int digits, std::string_view unit) {
        auto const end = std::to_chars(text.data(), text.data() + text.size(), value,
                                       std::chars_format::fixed, digits)
                             .ptr;
        return std::string{text.data(), end} + ' ' + std::string{unit};
    };
    if (seconds < 10) return write(seconds, 1, "s");
    if (seconds < 120) return write(seconds, 0, "s");
    if (seconds < 2 * 3600) return write(seconds / 60, 0, "min");
    return write(seconds / 3600, 1, "h");
}

}  // namespace

std::string_view to_string(Stage stage) noexcept {
    auto const index = static_cast<std::size_t>(stage);
    return index < names.size() ? names.at(index) : "unknown";
}

std::string to_string(OperationStatus const& status) {
    auto text = status.operation + " #" + std::to_string(status.id) + ": " +
                std::string{to_string(status.stage)} + " for " + span_text(status.in_stage);
    if (status.ends_in) text += ", " + span_text(*status.ends_in) + " left";
    if (!status.why.empty()) text += " (" + status.why + ')';
    if (status.queue_state && *status.queue_state != QueueState::active) {
        text += ", the service says " + std::string{to_string(*status.queue_state)};
        if (!status.queue_reason.empty()) text += ": " + status.queue_reason;
    }
    if (status.attempt > 0) text += ", attempt " + std::to_string(status.attempt);
    if (status.polls > 0) text += ", " + std::to_string(status.polls) + " polls";
    text += ", " + span_text(status.age) + " old";
    if (status.deadline_in) text += ", fails in " + span_text(*status.deadline_in);
    if (!status.request_id.empty()) text += ", request " + status.request_id;
    return text;
}

}  // namespace tinkxx
