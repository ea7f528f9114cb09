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
    request,  ///< what was promised, and is not collected yet
    result,   ///< what came of it
    usage,
    audit,
};
inline constexpr std::size_t table_count = 9;

/// A row to put or, without a value, to remove.
struct Change {
    Table table{Table::meta};
    std::string key{};
    std::optional<std::string> value{};
};

enum class Durability : std::uint8_t {
    power_loss,  ///< what was committed survives the machine
    process,     ///< what was committed survives the process; for tests
};

/// Rows in an SQLite file with a write-ahead log. One thread at a time.
class Database {
public:
    [[nodiscard]] static Result<std::unique_ptr<Database>> open(std::filesystem::path const& file,
                                                                Durability durability);
    ~Database();
    Database(Database const&) = delete;
    Database& operator=(Database const&) = delete;

    /// All of the changes or, if it fails, none.
    [[nodiscard]] Result<void> commit(std::span<Change const> changes);
    [[nodiscard]] Result<std::optional<std::string>> find(Table table, std::string_view key);
    /// All rows in the order of their keys.
    [[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> all(Table table);

private:
    struct Impl;
    explicit Database(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace tinkxx::local
