#include "local/core/chaos.hpp"

#include "base/common/entropy.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

namespace tinkxx::local {

namespace {

using namespace std::chrono_literals;

constexpr auto longest_delay = std::chrono::nanoseconds{1h};

Error wrong(std::string_view part, std::string const& why) {
    return Error{ErrorDetails{
        .kind = ErrorKind::validation,
        .message = "chaos: " + why + "; write it as 429:0.05,500:0.01,delay:50ms..2s,drop:0.01",
        .category = ErrorCategory::user,
        .field = "chaos",
        .value = std::string{part.substr(0, 100)}}};
}

std::string quoted(std::string_view text) { return "\"" + std::string{text.substr(0, 100)} + "\""; }

/// A number that is all of the text.
std::optional<double> number(std::string_view text) {
    double value = 0;
    auto const [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
    if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
        return std::nullopt;
    }
    return value;
}

std::optional<std::chrono::nanoseconds> duration(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, double>, 4> units{
        {{"ms", 1e6}, {"us", 1e3}, {"s", 1e9}, {"m", 60e9}}};
    for (auto const& [unit, scale] : units) {
        if (!text.ends_with(unit)) continue;
        auto const value = number(text.substr(0, text.size() - unit.size()));
        if (!value || *value < 0 || *value * scale > static_cast<double>(longest_delay.count())) {
            return std::nullopt;
        }
        return std::chrono::nanoseconds{static_cast<std::int64_t>(*value * scale)};
    }
    return std::nullopt;
}

}  // namespace

Result<ChaosPlan> parse_chaos(std::string_view text) {
    ChaosPlan plan;
    double total = 0;
    bool delayed = false;
    bool dropped = false;
    while (!text.empty()) {
        auto const comma = text.find(',');
        auto const part = text.substr(0, comma);
        text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
        if (comma != std::string_view::npos && text.empty()) {
            return wrong(part, "nothing follows the last comma");
        }
        auto const colon = part.find(':');
        if (colon == std::string_view::npos) {
            return wrong(part, quoted(part) + " has no colon");
        }
        auto const name = part.substr(0, colon);
        auto const value = part.substr(colon + 1);
        if (name == "delay") {
            if (std::exchange(delayed, true)) return wrong(part, "delay is there twice");
            auto const dots = value.find("..");
            auto const from = duration(value.substr(0, dots));
            auto const to =
                dots == std::string_view::npos ? from : duration(value.substr(dots + 2));
            if (!from || !to || *to < *from) {
                return wrong(part, quoted(value) +
                                       " is no delay from a shorter to a longer time of at most "
                                       "an hour, with units us, ms, s or m");
            }
            plan.shortest = *from;
            plan.longest = *to;
            continue;
        }
        auto const share = number(value);
        if (!share || *share < 0 || *share > 1) {
            return wrong(part, quoted(value) + " is no share from 0 to 1");
        }
        total += *share;
        if (name == "drop") {
            if (std::exchange(dropped, true)) return wrong(part, "drop is there twice");
            plan.drop = *share;
            continue;
        }
        auto const status = number(name);
        if (!status || *status != std::floor(*status) || *status < 400 || *status > 599) {
            return wrong(part,
                         quoted(name) + " is neither delay, drop nor a status from 400 to 599");
        }
        if (!plan.statuses.emplace(static_cast<int>(*status), *share).second) {
            return wrong(part, std::string{name} + " is there twice");
        }
    }
    if (total > 1) return wrong({}, "the shares are more than 1 together");
    return plan;
}

Fault Chaos::next() {
    auto const ordinal = ++ordinal_;
    auto const chance = [&](std::uint64_t stream) {
        auto const bits = base::mix(base::mix(seed_ ^ (stream * 0x9e3779b97f4a7c15U)) + ordinal);
        return static_cast<double>(bits >> 11U) * 0x1.0p-53;
    };
    Fault fault;
    auto const span = static_cast<double>((plan_.longest - plan_.shortest).count());
    fault.delay =
        plan_.shortest + std::chrono::nanoseconds{static_cast<std::int64_t>(chance(1) * span)};
    auto at = chance(2);
    for (auto const& [status, share] : plan_.statuses) {
        if (at < share) {
            fault.status = status;
            return fault;
        }
        at -= share;
    }
    if (at < plan_.drop) fault.drop = chance(3) < 0.5 ? Fault::Drop::before : Fault::Drop::after;
    return fault;
}

}  // namespace tinkxx::local
