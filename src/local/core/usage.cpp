#include "local/core/core.hpp"
#include "local/core/json.hpp"
#include "local/core/times.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <map>

namespace tinkxx::local {

using wire::JsonOut;

namespace {

using namespace std::chrono;

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

void Core::count_tokens(std::vector<Change>& changes, std::string const& session,
                        std::string const& base_model, std::string_view type, bool cached,
                        std::size_t tokens) {
    if (tokens == 0) return;
    auto const hour = duration_cast<hours>(scheduler_.wall().time_since_epoch()).count();
    auto key = key_of({.hour = hour,
                       .session = session,
                       .base_model = base_model,
                       .type = std::string{type},
                       .cached = cached});
    auto& total = usage_[key];
    total += static_cast<std::int64_t>(tokens);
    changes.push_back({Table::usage, std::move(key), std::to_string(total)});
}

tinkxx::detail::UniqueFunction<void()> Core::note_event(std::vector<Change>& changes,
                                                        std::string_view event,
                                                        std::string const& path) {
    auto const key_of_event = [](std::int64_t number) {
        auto key = std::to_string(number);
        key.insert(0, 12 - std::min<std::size_t>(12, key.size()), '0');
        return key;
    };
    auto const number = next_event_++;
    auto text = json_object([&](JsonOut& json) {
        json.member("timestamp", iso_time(scheduler_.wall()));
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
        store_->write(std::move(old));
    };
}

void Core::forget_usage() {
    // The oldest hours come first.
    std::vector<Change> old;
    while (usage_.size() > most_counts && old.size() < 1000) {
        old.push_back({Table::usage, usage_.begin()->first, std::nullopt});
        usage_.erase(usage_.begin());
    }
    store_->write(std::move(old));
}

void Core::audit(Ask& ask) {
    auto const type = ask.parameter("event_type", "all");
    constexpr std::array<std::string_view, 5> types{"all", "checkpoints", "projects", "teams",
                                                    "organizations"};
    if (std::ranges::find(types, type) == types.end()) {
        throw Refused{400, "audit: event_type is " + type.substr(0, 64) +
                               "; it must be all, checkpoints, projects, teams or organizations"};
    }
    auto const today = iso_time(scheduler_.wall()).substr(0, 10);
    auto const day = ask.parameter("day", today);
    if (day.size() != 10 || !parse_time(day)) {
        throw Refused{400, "audit: day is " + day.substr(0, 64) + "; write it as 2026-01-31"};
    }
    send_json(*ask.answer, json_object([&](JsonOut& json) {
        json.key("entries");
        json.open_array();
        // All events here are those of checkpoints.
        if (type == "all" || type == "checkpoints") {
            for (auto const& [number, text] : events_) {
                auto const parsed = wire::parse_json("audit", text);
                if (!parsed || !parsed->is_object()) continue;
                auto const* const time = parsed->get_object().if_contains("timestamp");
                if (time == nullptr || !time->is_string()) continue;
                auto const& stamp = time->get_string();
                if (std::string_view{stamp.data(), stamp.size()}.substr(0, 10) != day) continue;
                json.value(*parsed);
            }
        }
        json.close_array();
    }));
}

void Core::usage_events(Ask& ask) {
    auto const time = [&ask](std::string_view name) {
        auto const text = ask.parameter(name, "");
        auto const parsed = parse_time(text);
        if (!parsed) {
            throw Refused{400, "billing: " + std::string{name} + " is " + text.substr(0, 64) +
                                   "; write it as 2026-01-31T00:00:00Z"};
        }
        return *parsed;
    };
    auto const from = time("starting_on");
    auto const to = time("ending_before");
    if (to <= from || to - from > hours{24 * 14}) {
        throw Refused{400, "billing: ending_before must follow starting_on within 14 days"};
    }
    struct Event {
        Count count{};
        std::int64_t tokens{0};
    };
    std::vector<Event> events;
    std::set<std::string> sessions;
    for (auto const& [key, tokens] : usage_) {
        auto count = count_of(key);
        auto const at = hour_time(count.hour);
        if (at < from || at >= to) continue;
        sessions.insert(count.session);
        events.push_back({std::move(count), tokens});
    }
    std::ranges::stable_sort(events, [](Event const& a, Event const& b) {
        return std::pair{a.count.hour, -a.tokens} < std::pair{b.count.hour, -b.tokens};
    });
    send_json(*ask.answer, json_object([&](JsonOut& json) {
        json.key("data");
        json.open_array();
        for (auto const& [count, tokens] : events) {
            json.open_object();
            json.member("bucket_start", iso_time(hour_time(count.hour)));
            json.member("bucket_end", iso_time(hour_time(count.hour + 1)));
            json.member("base_model", count.base_model);
            if (!count.session.empty()) json.member("session_id", count.session);
            json.key("event_info");
            json.open_object();
            json.member("type", count.type);
            // Clients up to 0.30.4 take no member too many here.
            if (count.type == "sampling_prefill") json.member("cached", count.cached);
            json.member("token_count", tokens);
            json.close_object();
            json.close_object();
        }
        json.close_array();
        json.key("sessions");
        json.open_object();
        for (auto const& id : sessions) {
            auto const found = sessions_.find(id);
            if (found == sessions_.end()) continue;
            json.key(id);
            json.open_object();
            nullable(json, "user_metadata", found->second.row.user_metadata);
            json.close_object();
        }
        json.close_object();
    }));
}

void Core::storage_usage(Ask& ask) {
    auto const project = ask.parameter("project_id", "");
    struct Total {
        std::int64_t count{0};
        std::int64_t bytes{0};
    };
    std::map<std::string, Total> totals;
    for (auto const& [path, row] : checkpoints_) {
        if (find_checkpoint(path) == nullptr) continue;
        std::string mine;
        if (auto const run = runs_.find(path.run); run != runs_.end()) {
            auto const owner = sessions_.find(run->second.session);
            if (owner != sessions_.end()) {
                mine = owner->second.row.project_id.value_or(std::string{});
            }
        }
        if (!project.empty() && mine != project) continue;
        auto& total = totals[mine];
        ++total.count;
        total.bytes += row.size_bytes;
    }
    send_json(*ask.answer, json_object([&](JsonOut& json) {
        json.key("effective_rate_usd_per_gigabyte_month");
        json.null();
        json.key("data");
        json.open_array();
        for (auto const& [name, total] : totals) {
            json.open_object();
            json.key("project_id");
            if (name.empty()) {
                json.null();
            } else {
                json.value(name);
            }
            json.member("user_name", "local");
            json.member("checkpoint_count", total.count);
            json.member("size_bytes", total.bytes);
            json.member("size_gigabytes", static_cast<double>(total.bytes) / 1e9);
            json.key("estimated_monthly_cost_usd");
            json.null();
            json.close_object();
        }
        json.close_array();
    }));
}

}  // namespace tinkxx::local
