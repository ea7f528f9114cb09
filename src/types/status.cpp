#include <tinkxx/status.hpp>

#include "types/time_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

namespace tinkxx {

std::string types::span_text(std::chrono::nanoseconds span) {
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

std::string_view to_string(Stage stage) noexcept {
    switch (stage) {
        case Stage::waiting_for_place:
            return "waiting for a place";
        case Stage::starting:
            return "starting";
        case Stage::waiting_for_credential:
            return "waiting for a credential";
        case Stage::creating_sampler:
            return "creating its sampler";
        case Stage::waiting_for_slot:
            return "waiting for a slot";
        case Stage::waiting_for_count:
            return "waiting to be submitted";
        case Stage::throttled:
            return "throttled";
        case Stage::waiting_for_bytes:
            return "waiting for bytes";
        case Stage::encoding:
            return "encoding";
        case Stage::backing_off:
            return "backing off";
        case Stage::billing_pause:
            return "paused for billing";
        case Stage::submitting:
            return "submitting";
        case Stage::waiting_to_submit:
            return "waiting to submit again";
        case Stage::waiting_for_completion:
            return "waiting for completion";
        case Stage::waiting_for_download:
            return "waiting to download";
        case Stage::polling:
            return "polling";
        case Stage::waiting_to_poll:
            return "waiting to poll";
        case Stage::decoding:
            return "decoding";
        case Stage::waiting_to_retry:
            return "waiting to retry";
        case Stage::streaming:
            return "streaming";
        case Stage::waiting_for_turn:
            return "waiting for its turn";
        case Stage::computing_loss:
            return "computing its loss";
        case Stage::closing:
            return "closing";
    }
    return "unknown";
}

std::string to_string(OperationStatus const& status) {
    using types::span_text;
    auto text = status.operation + " #" + std::to_string(status.id) + ": " +
                std::string{to_string(status.stage)} + " for " + span_text(status.in_stage);
    if (status.ends_in) text += ", " + span_text(*status.ends_in) + " left";
    if (!status.why.empty()) text += " (" + status.why + ')';
    bool const idle = status.queue_state && *status.queue_state != QueueState::active;
    if (idle || !status.queue_reason.empty()) {
        text += ", the service says";
        if (idle) text += ' ' + std::string{to_string(*status.queue_state)};
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
