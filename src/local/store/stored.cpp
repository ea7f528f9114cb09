#include "local/store/stored.hpp"

#include "local/store/files.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>

namespace tinkxx::local {

namespace {

std::optional<std::int64_t> whole_number(std::string_view text) {
    std::int64_t number = 0;
    auto const* const end = text.data() + text.size();
    auto const read = std::from_chars(text.data(), end, number);
    if (text.empty() || read.ec != std::errc{} || read.ptr != end) return std::nullopt;
    return number >= 0 && number < most_ordinals ? std::optional{number} : std::nullopt;
}

Error not_a_number(std::string_view what, std::string const& text) {
    return Error{ErrorDetails{.kind = ErrorKind::validation,
                              .message = std::string{what} + ": " + text.substr(0, 40) +
                                         " is not a number of at least 0"}};
}

/// Fails unless a row stands under its own key.
Result<void> check_key(Table table, std::string const& key, std::string const& id) {
    if (id == key) return {};
    return Error{ErrorDetails{.kind = ErrorKind::validation,
                              .message = std::string{to_string(table)} + ": the row says " +
                                         id.substr(0, 100) + ", and stands under another key"}};
}

/// Puts a row with an id into the map of its kind.
template <class Row>
Result<void> take_row(std::map<std::string, Row>& rows, Table table, std::string const& key,
                      Result<Row> row) {
    if (!row) return row.error();
    if (auto const fine = check_key(table, key, row->id); !fine) return fine;
    rows[key] = *std::move(row);
    return {};
}

Result<void> take_checkpoint(Stored& stored, std::string const& key, std::string const& value) {
    auto row = decode_checkpoint_row(value);
    if (!row) return row.error();
    auto const path = row->path;
    if (auto const fine = check_key(Table::checkpoint, key, path.text()); !fine) return fine;
    stored.checkpoints[path] = *std::move(row);
    return {};
}

Result<void> take_request(Stored& stored, std::string const& key, std::string const& value) {
    auto row = decode_request_row(value);
    if (!row) return row.error();
    if (auto const fine = check_key(Table::request, key, row->id); !fine) return fine;
    stored.requests.push_back(*std::move(row));
    return {};
}

/// Puts one row where it belongs.
Result<void> take(Stored& stored, Table table, std::string const& key, std::string const& value) {
    switch (table) {
        case Table::meta:
            stored.meta[key] = value;
            return {};
        case Table::session:
            return take_row(stored.sessions, table, key, decode_session_row(value));
        case Table::run:
            return take_row(stored.runs, table, key, decode_run_row(value));
        case Table::sampler:
            return take_row(stored.samplers, table, key, decode_sampler_row(value));
        case Table::checkpoint:
            return take_checkpoint(stored, key, value);
        case Table::request:
            return take_request(stored, key, value);
        case Table::usage: {
            auto const number = whole_number(value);
            if (!number) return not_a_number("usage", value);
            stored.usage[key] = *number;
            return {};
        }
        case Table::audit: {
            auto const number = whole_number(key);
            if (!number) return not_a_number("audit", key);
            stored.events.emplace_back(*number, value);
            return {};
        }
        case Table::result:
        case Table::quarantine:
            return {};
    }
    return {};
}

}  // namespace

Result<Stored> read_stored(Database& database) {
    Stored stored;
    for (auto const table : {Table::meta, Table::session, Table::run, Table::sampler,
                             Table::checkpoint, Table::request, Table::usage, Table::audit}) {
        auto rows = database.all(table);
        if (!rows) return rows.error();
        for (auto& [key, value] : *rows) {
            auto const taken = take(stored, table, key, value);
            if (taken) continue;
            stored.bad.push_back({table, std::move(key), std::move(value), taken.error().what()});
        }
    }
    return stored;
}

std::vector<Change> quarantine(std::vector<BadRow> const& rows) {
    std::vector<Change> changes;
    for (auto const& row : rows) {
        auto const key = std::string{to_string(row.table)} + " " + row.key;
        changes.push_back({Table::quarantine, key, row.value});
        changes.push_back({row.table, row.key, std::nullopt});
    }
    return changes;
}

Result<Inventory> take_inventory(Home const& home, Stored const& stored) {
    Inventory inventory;
    auto const counted = [&](std::int64_t number) {
        inventory.next_ordinal = std::max(inventory.next_ordinal, number + 1);
    };
    std::set<std::string> wanted;
    for (auto const& [path, row] : stored.checkpoints) {
        wanted.insert(row.folder);
        counted(row.ordinal);
    }
    std::set<std::string> over;
    for (auto const& [id, row] : stored.samplers) {
        if (row.folder.empty()) continue;
        auto const owner = stored.sessions.find(row.session);
        // A session that nobody knows of has not ended: its row may be what was lost.
        if (owner == stored.sessions.end() || owner->second.status == SessionPhase::active) {
            wanted.insert(row.folder);
        } else {
            over.insert(row.folder);
        }
    }
    auto const prefix = removal_key("");
    for (auto at = stored.meta.lower_bound(prefix);
         at != stored.meta.end() && at->first.starts_with(prefix); ++at) {
        auto const folder = at->first.substr(prefix.size());
        if (valid_place(folder) && !wanted.contains(folder)) over.insert(folder);
    }
    inventory.over.assign(over.begin(), over.end());
    for (std::string const place : {"checkpoints", "ephemeral"}) {
        auto const entries = list_folder(home.place(place));
        if (!entries) return entries.error();
        for (auto const& entry : *entries) {
            auto const name = place + "/" + entry.name;
            counted(ordinal_of(entry.name));
            auto const temporary = home.temporary(place, entry.name);
            if (temporary) {
                auto const& meant = temporary->relative;
                counted(ordinal_of(meant.substr(meant.find('/') + 1)));
                if (wanted.contains(meant) && kind_of(home.place(meant)) == EntryKind::missing) {
                    inventory.to_finish.push_back({name, meant});
                } else {
                    inventory.abandoned.push_back(name);
                }
            } else if (!(entry.kind == EntryKind::folder &&
                         (wanted.contains(name) || over.contains(name)))) {
                inventory.unaccounted.push_back(name);
            }
        }
    }
    for (auto const& name : wanted) {
        if (kind_of(home.place(name)) == EntryKind::folder) continue;
        bool const comes_back = std::ranges::any_of(
            inventory.to_finish, [&](auto const& rename) { return rename.to == name; });
        if (!comes_back) inventory.missing.push_back(name);
    }
    return inventory;
}

std::string removal_key(std::string_view folder) { return "remove " + std::string{folder}; }

std::string some_of(std::vector<std::string> const& names, std::size_t most) {
    std::string text;
    for (std::size_t i = 0; i < std::min(most, names.size()); ++i) {
        text += (text.empty() ? "" : ", ") + names[i];
    }
    if (names.size() > most) text += " and " + std::to_string(names.size() - most) + " more";
    return text;
}

}  // namespace tinkxx::local
