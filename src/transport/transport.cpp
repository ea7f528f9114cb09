#include <tinkxx/transport.hpp>

#include "transport/start_failure.hpp"

#include <algorithm>
#include <exception>
#include <stdexcept>

namespace tinkxx {
namespace {

// ASCII only: the locale must not decide which headers are equal.
constexpr char lower(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_name(std::string_view a, std::string_view b) noexcept {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
               return x == y || lower(x) == lower(y);
           });
}

}  // namespace

std::string const* Headers::find(std::string_view name) const noexcept {
    for (auto const& line : lines_) {
        if (same_name(line.name, name)) return &line.value;
    }
    return nullptr;
}

void Headers::add(std::string name, std::string value) {
    lines_.push_back({.name = std::move(name), .value = std::move(value)});
}

void Headers::set(std::string_view name, std::string value) {
    auto const is_it = [name](Header const& line) { return same_name(line.name, name); };
    auto const first = std::find_if(lines_.begin(), lines_.end(), is_it);
    if (first == lines_.end()) return add(std::string{name}, std::move(value));
    first->value = std::move(value);
    lines_.erase(std::remove_if(first + 1, lines_.end(), is_it), lines_.end());
}

void Headers::remove(std::string_view name) noexcept {
    std::erase_if(lines_, [name](Header const& line) { return same_name(line.name, name); });
}

std::string_view to_string(Purpose purpose) noexcept {
    switch (purpose) {
        case Purpose::session:
            return "session";
        case Purpose::sample:
            return "sample";
        case Purpose::train:
            return "train";
        case Purpose::rest:
            return "rest";
        case Purpose::retrieve:
            return "retrieve";
        case Purpose::completion_poll:
            return "completion_poll";
        case Purpose::telemetry:
            return "telemetry";
        case Purpose::auth:
            return "auth";
    }
    return "unknown";
}

std::string_view to_string(Seen seen) noexcept {
    switch (seen) {
        case Seen::no:
            return "no";
        case Seen::partly:
            return "partly";
        case Seen::maybe:
            return "maybe";
    }
    return "unknown";
}

std::string_view to_string(FailureKind kind) noexcept {
    switch (kind) {
        case FailureKind::invalid_request:
            return "invalid_request";
        case FailureKind::resolve:
            return "resolve";
        case FailureKind::connect:
            return "connect";
        case FailureKind::proxy:
            return "proxy";
        case FailureKind::tls:
            return "tls";
        case FailureKind::reset:
            return "reset";
        case FailureKind::protocol:
            return "protocol";
        case FailureKind::decoding:
            return "decoding";
        case FailureKind::too_large:
            return "too_large";
        case FailureKind::redirect:
            return "redirect";
        case FailureKind::connect_timeout:
            return "connect_timeout";
        case FailureKind::read_timeout:
            return "read_timeout";
        case FailureKind::write_timeout:
            return "write_timeout";
        case FailureKind::pool_timeout:
            return "pool_timeout";
        case FailureKind::total_timeout:
            return "total_timeout";
        case FailureKind::closed:
            return "closed";
    }
    return "unknown";
}

bool is_timeout(FailureKind kind) noexcept {
    switch (kind) {
        case FailureKind::connect_timeout:
        case FailureKind::read_timeout:
        case FailureKind::write_timeout:
        case FailureKind::pool_timeout:
        case FailureKind::total_timeout:
            return true;
        default:
            return false;
    }
}

Failure base::start_failure() {
    Failure failure;
    failure.message = "the transport threw: ";
    try {
        throw;
    } catch (std::logic_error const& e) {
        failure.permanent = true;  // a mistake in its code, and there the next time
        failure.message.append(e.what()).append("; fix ClientOptions::transport");
    } catch (std::exception const& e) {
        failure.message += e.what();
    } catch (...) {
        failure.message += "something that is no std::exception";
    }
    return failure;
}

}  // namespace tinkxx
