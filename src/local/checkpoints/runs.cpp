#include "local/checkpoints/runs.hpp"

#include "base/loop/loop_rule.hpp"
#include "local/api/json.hpp"
#include "local/api/listing.hpp"
#include "local/checkpoints/checkpoints.hpp"
#include "local/common/times.hpp"

#include <utility>

namespace tinkxx::local {

using wire::JsonOut;

namespace {

std::size_t kept_bytes_of(RunRow const& row) noexcept {
    return row_bytes + bytes_of(row.user_metadata);
}

}  // namespace

RunRow const* Runs::find(std::string const& id) const {
    auto const found = runs_.find(id);
    return found == runs_.end() ? nullptr : &found->second;
}

MaybeRefused Runs::check_new(std::string_view operation, std::string const& session,
                             Texts const& metadata) {
    if (auto no = sessions_.check_metadata(operation, bytes_of(metadata))) return no;
    std::size_t have = 0;
    for_session(runs_, session, [&](auto&, auto&) { ++have; });
    if (auto no = sessions_.check_count(operation, session, "models", have)) return no;
    return sessions_.keep(operation, bytes_of(metadata));
}

void Runs::add(RunRow row) {
    TINKXX_ASSERT_LOOP(services_.scheduler);
    auto const id = row.id;
    runs_[id] = std::move(row);
}

void Runs::erase(std::string const& id) {
    runs_.erase(id);
    touched_.erase(id);
}

void Runs::touch(std::string const& id) {
    TINKXX_ASSERT_LOOP(services_.scheduler);
    runs_.at(id).last_request = services_.scheduler.wall();
    touched_.insert(id);
}

void Runs::set_training(std::string const& id, Training const& training) {
    auto const found = runs_.find(id);
    if (found != runs_.end()) found->second.training = training;
}

std::string Runs::project_of(std::string const& id) const {
    auto const* const run = find(id);
    auto const* const owner = run == nullptr ? nullptr : sessions_.find(run->session);
    return owner == nullptr ? std::string{} : owner->project_id.value_or(std::string{});
}

void Runs::write_touched() {
    for (auto const& id : std::exchange(touched_, {})) {
        services_.store->write({{Table::run, id, encode(runs_.at(id))}});
    }
}

bool Runs::go_on(Look& look) const {
    return look.walk.go_on(rows_at_once,
                           [&](auto&, RunRow const& row) { look.bytes += kept_bytes_of(row); });
}

std::size_t Runs::kept_bytes(std::string const& session) const {
    std::size_t bytes = 0;
    for_session(runs_, session, [&](auto&, RunRow const& row) { bytes += kept_bytes_of(row); });
    return bytes;
}

void Runs::summarize(std::string const& session, SessionHoldings& summary) const {
    for_session(runs_, session, [&](std::string const& id, auto&) { summary.runs.push_back(id); });
}

void Runs::forget_session(std::string const& session, std::vector<Change>& changes) {
    forget_of_session(runs_, Table::run, session, changes);
    std::erase_if(touched_, [&](auto const& run) { return run.starts_with(session + ":"); });
}

MaybeRefused Runs::list_runs(Ask& ask) {
    auto const page = ask.page(20);
    if (!page) return page.refused();
    auto const fits = [this, project = ask.parameter("project_id", "")](RunRow const& run) {
        if (project.empty()) return true;
        auto const* const owner = sessions_.find(run.session);
        return owner != nullptr && owner->project_id == project;
    };
    auto const write = [this](JsonOut& json, RunRow const& run) {
        checkpoints_.write_run(json, run);
    };
    send_list(services_.lists, ask.answer,
              PageOrder<Map>{.rows = runs_,
                             .name = "training_runs",
                             .fits = fits,
                             .rank = [](RunRow const& run) { return to_micros(run.created); },
                             .offset = page->offset,
                             .limit = page->limit,
                             .write = write,
                             .finish = cursor_of(*page)});
    return {};
}

MaybeRefused Runs::get_run(Ask& ask) {
    auto const* const run = find(ask.names.at(0));
    if (run == nullptr) {
        return Refused{404, "training_runs: there is no run " + ask.names.at(0).substr(0, 200)};
    }
    std::string body;
    JsonOut json{body};
    checkpoints_.write_run(json, *run);
    send_json(*ask.answer, std::move(body));
    return {};
}

}  // namespace tinkxx::local
