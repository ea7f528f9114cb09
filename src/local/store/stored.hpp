#pragma once

#include <tinkxx/result.hpp>

#include "local/store/database.hpp"
#include "local/store/home.hpp"
#include "local/store/rows.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

// What a home holds when a server starts: rows, and the folders that they name.

namespace tinkxx::local {

/// A row that cannot be read.
struct BadRow {
    Table table{Table::meta};
    std::string key{};
    std::string value{};
    std::string why{};
};

/// All rows of a database.
struct Stored {
    std::map<std::string, SessionRow> sessions{};
    std::map<std::string, RunRow> runs{};
    std::map<std::string, SamplerRow> samplers{};
    std::map<TinkerPath, CheckpointRow> checkpoints{};
    std::vector<RequestRow> requests{};
    std::map<std::string, std::int64_t> usage{};
    std::vector<std::pair<std::int64_t, std::string>> events{};
    std::map<std::string, std::string> meta{};
    std::vector<BadRow> bad{};
};
/// Fails only if the database itself cannot be read; a row that cannot is one of `bad`.
[[nodiscard]] Result<Stored> read_stored(Database& database);
/// The changes that put bad rows aside, where nobody reads them and nothing is lost.
[[nodiscard]] std::vector<Change> quarantine(std::vector<BadRow> const& rows);

/// The key in `meta` of a folder that no row names any more and that is to be removed. Numbers of
/// folders are never given again, so that this stays true whatever becomes of the database.
[[nodiscard]] std::string removal_key(std::string_view folder);

/// The folders of a home beside the rows that name them. All names are relative to the home.
struct Inventory {
    struct Rename {
        std::string from{};
        std::string to{};
    };
    /// A folder whose row was safe before it had its name, or that was not removed after all.
    std::vector<Rename> to_finish{};
    /// Of the server's own temporary form, and named by no row.
    std::vector<std::string> abandoned{};
    /// Folders that are to be removed, as the database says, and weights without a name whose
    /// session has ended.
    std::vector<std::string> over{};
    /// Everything else that no row names. It is kept.
    std::vector<std::string> unaccounted{};
    /// Folders that rows name and that are not there.
    std::vector<std::string> missing{};
    /// Larger than any number that a folder or a row has.
    std::int64_t next_ordinal{1};
};
[[nodiscard]] Result<Inventory> take_inventory(Home const& home, Stored const& stored);

/// Some of the names, for a message: "a, b and 3 more".
[[nodiscard]] std::string some_of(std::vector<std::string> const& names, std::size_t most = 5);

}  // namespace tinkxx::local
