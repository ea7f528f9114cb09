#pragma once

#include <tinkxx/result.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::local {

/// What is kept, each under keys of its own. Values are JSON text, but for results.
enum class Table : std::uint8_t {
    meta,
    session,
    run,
    sampler,
    checkpoint,
    request,  ///< results that are pending or not fetched yet
    result,   ///< what came of it
    usage,
    audit,
    quarantine,  ///< rows that could not be read, by table and key
};
inline constexpr std::size_t table_count = 10;
[[nodiscard]] std::string_view to_string(Table table) noexcept;

/// The version of the tables and of what is in them. 1 had neither a version nor a marker of its
/// home, nor rows in quarantine, nor checksums of checkpoints.
inline constexpr std::int64_t schema_version = 2;
inline constexpr std::int64_t first_marked_schema = 2;

/// A row to put or, without a value, to remove.
struct Change {
    Table table{Table::meta};
    std::string key{};
    std::optional<std::string> value{};
    /// Instead of `value`, for what is too large to be copied.
    std::shared_ptr<std::string const> shared{};
};

enum class Durability : std::uint8_t {
    power_loss,  ///< what was committed survives the machine
    process,     ///< what was committed survives the process; for tests
};

/// What is in a database, without a change to it.
struct DatabaseLook {
    /// Of the schema; 0 if there is none yet, 1 for tables without a version.
    std::int64_t version{0};
    /// Whether it has the tables that every version had.
    bool ours{false};
    /// Of its home, if it knows.
    std::string home_id{};
};
/// Fails if the file is not a database, or not a regular file.
[[nodiscard]] Result<DatabaseLook> look_at_database(std::filesystem::path const& file);

/// The rows of a damaged database that can be read: of each table those before the first and those
/// behind the last that cannot. Brings its log into the file first, as far as that can be done.
[[nodiscard]] std::vector<Change> salvage_rows(std::filesystem::path const& file);

struct DatabaseOptions {
    Durability durability{Durability::power_loss};
    /// Of the home that it belongs to. Fails if the database says otherwise.
    std::string home_id{};
    /// Where a copy is kept before a change of the schema.
    std::filesystem::path backups{};
};

/// Rows in an SQLite file with a write-ahead log, which only its owner can read. One thread at a
/// time.
class Database {
public:
    /// Makes the file if there is none. An older schema is brought up to date in one transaction,
    /// after a backup; a newer one is refused.
    [[nodiscard]] static Result<std::unique_ptr<Database>> open(std::filesystem::path const& file,
                                                                DatabaseOptions const& options);
    ~Database();
    Database(Database const&) = delete;
    Database& operator=(Database const&) = delete;

    /// All of the changes or, if it fails, none.
    [[nodiscard]] Result<void> commit(std::span<Change const> changes);
    [[nodiscard]] Result<std::optional<std::string>> find(Table table, std::string_view key);
    /// All rows in the order of their keys.
    [[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> all(Table table);
    /// What an operator should know of the opening: a backup, a table that was missing.
    [[nodiscard]] std::vector<std::string> const& notes() const noexcept;
    /// What SQLite finds wrong with the file; none if it is whole. Reads all of it.
    [[nodiscard]] Result<std::vector<std::string>> check();

private:
    struct Impl;
    explicit Database(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace tinkxx::local
