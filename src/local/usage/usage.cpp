#include "local/core/core.hpp"
#include "local/api/json.hpp"
#include "local/api/sending.hpp"
#include "local/api/times.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <map>

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
struct Core::UsageReport {
    struct Event {
        Count count{};
        std::int64_t tokens{0};
    };

    UsageReport(Core const& core, WallTime first, WallTime end)
        : counts{core.usage_}, from{first}, to{end} {
        json.open_object();
    }
    UsageReport(UsageReport const&) = delete;
    UsageReport& operator=(UsageReport const&) = delete;

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

    Walk<std::map<std::string, std::int64_t>> counts;
    WallTime from;
    WallTime to;
    std::vector<Event> events{};
    std::set<std::string> sessions{};
    std::string metadata{};  ///< of the sessions, as an object
    JsonOut json{metadata};
    std::string body{};
};

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
                if (text.starts_with(event_start + day)) json.raw(text);
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
    auto report = std::make_shared<UsageReport>(*this, from, to);
    lists_.run([this, report, answer = ask.answer] {
        if (!read_usage(*report)) return false;
        result_worker_->run([report] { report->write(); },
                            [report, answer] {
                                send_shared(
                                    answer, "application/json",
                                    std::make_shared<std::string const>(std::move(report->body)));
                            });
        return true;
    });
}

bool Core::read_usage(UsageReport& report) const {
    bool const all = report.counts.go_on(1000, [&](std::string const& key, std::int64_t tokens) {
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
        auto const found = sessions_.find(id);
        if (found == sessions_.end()) continue;
        report.json.key(id);
        report.json.open_object();
        nullable(report.json, "user_metadata", found->second.row.user_metadata);
        report.json.close_object();
    }
    return report.sessions.empty();
}

void Core::storage_usage(Ask& ask) {
    struct Total {
        std::int64_t count{0};
        std::int64_t bytes{0};
    };
    struct Report {
        Walk<std::map<TinkerPath, CheckpointRow>> checkpoints;
        std::string project{};
        std::map<std::string, Total> totals{};
    };
    auto report = std::make_shared<Report>(
        Report{.checkpoints = Walk{checkpoints_}, .project = ask.parameter("project_id", "")});
    auto const add = [this, report](TinkerPath const& path, CheckpointRow const& row) {
        if (find_checkpoint(path) == nullptr) return;
        std::string mine;
        if (auto const run = runs_.find(path.run); run != runs_.end()) {
            auto const owner = sessions_.find(run->second.session);
            if (owner != sessions_.end()) {
                mine = owner->second.row.project_id.value_or(std::string{});
            }
        }
        if (!report->project.empty() && mine != report->project) return;
        auto& total = report->totals[mine];
        ++total.count;
        total.bytes += row.size_bytes;
    };
    auto const write = [report](JsonOut& json) {
        json.key("effective_rate_usd_per_gigabyte_month");
        json.null();
        json.key("data");
        json.open_array();
        for (auto const& [name, total] : report->totals) {
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
    };
    lists_.run([report, add, write, answer = ask.answer] {
        if (!report->checkpoints.go_on(1000, add)) return false;
        send_json(*answer, json_object(write));
        return true;
    });
}

}  // namespace tinkxx::local
