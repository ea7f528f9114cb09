#include "local/usage/usage.hpp"

#include "base/loop/loop_rule.hpp"
#include "local/api/json.hpp"
#include "local/api/sending.hpp"
#include "local/common/times.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <map>
#include <set>

namespace tinkxx::local {

using wire::JsonOut;

namespace {

using namespace std::chrono;

/// How the text of an event begins, before its time.
std::string const event_start = R"({"timestamp":")";
constexpr std::size_t most_events = 10'000;
constexpr std::size_t most_counts = 100'000;

/// A count of tokens and what it counts, as its key names it.
struct Count {
    std::int64_t hour{0};
    std::string session{};
    std::string base_model{};
    std::string type{};
    bool cached{false};
};

std::string key_of(Count const& count) {
    // Hours have six digits for the next century.
    auto const hour = std::to_string(count.hour);
    return hour + "|" + count.session + "|" + count.type + "|" + (count.cached ? "1" : "0") + "|" +
           count.base_model;
}

Count count_of(std::string_view key) {
    auto const part = [&key] {
        auto const end = key.find('|');
        auto const text = key.substr(0, end);
        key = end == std::string_view::npos ? std::string_view{} : key.substr(end + 1);
        return std::string{text};
    };
    Count count;
    auto const hour = part();
    std::from_chars(hour.data(), hour.data() + hour.size(), count.hour);
    count.session = part();
    count.type = part();
    count.cached = part() == "1";
    count.base_model = key;
    return count;
}

WallTime hour_time(std::int64_t hour) { return WallTime{hours{hour}}; }

}  // namespace

/// Counts of some time, as they are gathered and written.
struct Usage::Report {
    struct Event {
        Count count{};
        std::int64_t tokens{0};
    };

    Report(Counts const& all, WallTime first, WallTime end) : counts{all}, from{first}, to{end} {
        json.open_object();
    }
    Report(Report const&) = delete;
    Report& operator=(Report const&) = delete;

    /// Any thread, once all is read.
    void write() {
        json.close_object();
        std::ranges::stable_sort(events, [](Event const& a, Event const& b) {
            return std::pair{a.count.hour, -a.tokens} < std::pair{b.count.hour, -b.tokens};
        });
        body = json_object([this](JsonOut& out) {
            out.key("data");
            out.open_array();
            for (auto const& event : events) write(out, event);
            out.close_array();
            out.key("sessions");
            out.raw(metadata);
        });
    }
    static void write(JsonOut& out, Event const& event) {
        auto const& [count, tokens] = event;
        out.open_object();
        out.member("bucket_start", iso_time(hour_time(count.hour)));
        out.member("bucket_end", iso_time(hour_time(count.hour + 1)));
        out.member("base_model", count.base_model);
        if (!count.session.empty()) out.member("session_id", count.session);
        out.key("event_info");
        out.open_object();
        out.member("type", count.type);
        // Clients up to 0.30.4 take no member too many here.
        if (count.type == "sampling_prefill") out.member("cached", count.cached);
        out.member("token_count", tokens);
        out.close_object();
        out.close_object();
    }

    Walk<Counts> counts;
    WallTime from;
    WallTime to;
    std::vector<Event> events{};
    std::set<std::string> sessions{};
    std::string metadata{};  ///< of the sessions, as an object
    JsonOut json{metadata};
    std::string body{};
};

Usage::Usage(Services& services, Sessions const& sessions, Counts counts, Events events)
    : services_{services}, sessions_{sessions}, counts_{std::move(counts)} {
    for (auto& [number, text] : events) {
        next_event_ = std::max<std::int64_t>(next_event_, number + 1);
        events_.emplace_back(number, std::move(text));
    }
}

void Usage::count_tokens(std::vector<Change>& changes, Tokens const& what, std::size_t tokens) {
    TINKXX_ASSERT_LOOP(services_.scheduler);
    if (tokens == 0) return;
    auto const hour = duration_cast<hours>(services_.scheduler.wall().time_since_epoch()).count();
    auto key = key_of({.hour = hour,
                       .session = what.session,
                       .base_model = what.base_model,
                       .type = std::string{what.type},
                       .cached = what.cached});
    auto& total = counts_[key];
    total += static_cast<std::int64_t>(tokens);
    changes.push_back({Table::usage, std::move(key), std::to_string(total)});
}

tinkxx::detail::UniqueFunction<void()> Usage::note_event(std::vector<Change>& changes,
                                                         std::string_view event,
                                                         std::string const& path) {
    TINKXX_ASSERT_LOOP(services_.scheduler);
    auto const key_of_event = [](std::int64_t number) {
        auto key = std::to_string(number);
        key.insert(0, 12 - std::min<std::size_t>(12, key.size()), '0');
        return key;
    };
    auto const number = next_event_++;
    auto text = json_object([&](JsonOut& json) {
        json.member("timestamp", iso_time(services_.scheduler.wall()));
        json.member("event", event);
        json.key("event_details");
        json.open_object();
        json.member("tinker_path", path);
        json.close_object();
        json.member("tinker_path", path);
    });
    changes.push_back({Table::audit, key_of_event(number), text});
    return [this, number, text = std::move(text), key_of_event]() mutable {
        events_.emplace_back(number, std::move(text));
        std::vector<Change> old;
        for (; events_.size() > most_events; events_.pop_front()) {
            old.push_back({Table::audit, key_of_event(events_.front().first), std::nullopt});
        }
        services_.store->write(std::move(old));
    };
}

void Usage::forget_old() {
    // The oldest hours come first.
    std::vector<Change> old;
    while (counts_.size() > most_counts && old.size() < 1000) {
        old.push_back({Table::usage, counts_.begin()->first, std::nullopt});
        counts_.erase(counts_.begin());
    }
    services_.store->write(std::move(old));
}

MaybeRefused Usage::audit(Ask& ask) {
    auto const type = ask.parameter("event_type", "all");
    constexpr std::array<std::string_view, 5> types{"all", "checkpoints", "projects", "teams",
                                                    "organizations"};
    if (std::ranges::find(types, type) == types.end()) {
        return Refused{400, "audit: event_type is " + type.substr(0, 64) +
                                "; it must be all, checkpoints, projects, teams or organizations"};
    }
    auto const today = iso_time(services_.scheduler.wall()).substr(0, 10);
    auto const day = ask.parameter("day", today);
    if (day.size() != 10 || !parse_time(day)) {
        return Refused{400, "audit: day is " + day.substr(0, 64) + "; write it as 2026-01-31"};
    }
    send_json(*ask.answer, json_object([&](JsonOut& json) {
        json.key("entries");
        json.open_array();
        // All events here are those of checkpoints.
        if (type == "all" || type == "checkpoints") {
            for (auto const& [number, text] : events_) {
                if (text.starts_with(event_start + day)) json.raw(text);
            }
        }
        json.close_array();
    }));
    return {};
}

MaybeRefused Usage::usage_events(Ask& ask) {
    auto const time = [&ask](std::string_view name) -> Outcome<WallTime> {
        auto const text = ask.parameter(name, "");
        auto const parsed = parse_time(text);
        if (!parsed) {
            return Refused{400, "billing: " + std::string{name} + " is " + text.substr(0, 64) +
                                    "; write it as 2026-01-31T00:00:00Z"};
        }
        return *parsed;
    };
    auto const from = time("starting_on");
    if (!from) return from.refused();
    auto const to = time("ending_before");
    if (!to) return to.refused();
    if (*to <= *from || *to - *from > hours{24 * 14}) {
        return Refused{400, "billing: ending_before must follow starting_on within 14 days"};
    }
    auto report = std::make_shared<Report>(counts_, *from, *to);
    services_.lists.run([this, report, answer = ask.answer] {
        if (!read(*report)) return false;
        services_.result_worker->run(
            [report] { report->write(); },
            [report, answer] {
                send_shared(answer, "application/json",
                            std::make_shared<std::string const>(std::move(report->body)));
            });
        return true;
    });
    return {};
}

bool Usage::read(Report& report) const {
    bool const all =
        report.counts.go_on(rows_at_once, [&](std::string const& key, std::int64_t tokens) {
            auto count = count_of(key);
            auto const at = hour_time(count.hour);
            if (at < report.from || at >= report.to) return;
            report.sessions.insert(count.session);
            report.events.push_back({std::move(count), tokens});
        });
    if (!all) return false;
    constexpr std::size_t bytes_at_once = std::size_t{256} << 10U;
    auto const begin = report.metadata.size();
    while (!report.sessions.empty() && report.metadata.size() - begin < bytes_at_once) {
        auto const id = std::move(report.sessions.extract(report.sessions.begin()).value());
        auto const* const session = sessions_.find(id);
        if (session == nullptr) continue;
        report.json.key(id);
        report.json.open_object();
        nullable(report.json, "user_metadata", session->user_metadata);
        report.json.close_object();
    }
    return report.sessions.empty();
}

}  // namespace tinkxx::local
