#include "local/store/database.hpp"

#include <sqlite3.h>

#include <array>

namespace tinkxx::local {

namespace {

constexpr std::array<std::string_view, table_count> names{
    "meta", "session", "run", "sampler", "checkpoint", "request", "result", "usage", "audit"};

struct CloseDatabase {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
struct CloseStatement {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, CloseStatement>;

Error failed(std::string const& what, sqlite3* db) {
    return Error{ErrorDetails{
        .kind = ErrorKind::request_failed,
        .message = what + ": " + (db == nullptr ? "out of memory" : sqlite3_errmsg(db)),
        .category = ErrorCategory::server}};
}

/// Makes a statement ready for its next use when the use ends.
class Use {
public:
    explicit Use(Statement const& statement) : statement_{statement.get()} {}
    ~Use() {
        sqlite3_reset(statement_);
        sqlite3_clear_bindings(statement_);
    }
    Use(Use const&) = delete;
    Use& operator=(Use const&) = delete;

    // The bytes outlive the use.
    void key(std::string_view text) {
        sqlite3_bind_text64(statement_, 1, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
    }
    void value(std::string_view bytes) {
        sqlite3_bind_blob64(statement_, 2, bytes.data(), bytes.size(), SQLITE_STATIC);
    }
    [[nodiscard]] int step() { return sqlite3_step(statement_); }
    [[nodiscard]] std::string bytes(int column) {
        auto const* const data = static_cast<char const*>(sqlite3_column_blob(statement_, column));
        auto const size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
        return data == nullptr ? std::string{} : std::string{data, size};
    }

private:
    sqlite3_stmt* statement_;
};

}  // namespace

struct Database::Impl {
    std::unique_ptr<sqlite3, CloseDatabase> db{};
    Statement begin{};
    Statement commit{};
    Statement rollback{};
    struct PerTable {
        Statement put{};
        Statement remove{};
        Statement find{};
        Statement all{};
    };
    std::array<PerTable, table_count> tables{};

    [[nodiscard]] PerTable& of(Table table) { return tables[static_cast<std::size_t>(table)]; }

    [[nodiscard]] bool prepare(Statement& out, std::string const& sql) {
        sqlite3_stmt* made = nullptr;
        auto const code =
            sqlite3_prepare_v3(db.get(), sql.c_str(), static_cast<int>(sql.size()) + 1,
                               SQLITE_PREPARE_PERSISTENT, &made, nullptr);
        out.reset(made);
        return code == SQLITE_OK;
    }

    [[nodiscard]] bool run(Statement const& statement) {
        return Use{statement}.step() == SQLITE_DONE;
    }

    [[nodiscard]] bool apply(Change const& change) {
        auto& table = of(change.table);
        Use use{change.value ? table.put : table.remove};
        use.key(change.key);
        if (change.value) use.value(*change.value);
        return use.step() == SQLITE_DONE;
    }
};

Database::Database(std::unique_ptr<Impl> impl) : impl_{std::move(impl)} {}
Database::~Database() = default;

Result<std::unique_ptr<Database>> Database::open(std::filesystem::path const& file,
                                                 Durability durability) {
    auto const what = "open " + file.string();
    auto impl = std::make_unique<Impl>();
    sqlite3* db = nullptr;
    auto const flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    auto const opened = sqlite3_open_v2(file.c_str(), &db, flags, nullptr);
    impl->db.reset(db);
    if (opened != SQLITE_OK) return failed(what, db);
    // How far to go comes first: the change of the journal is a write already.
    std::string setup = "PRAGMA synchronous=";
    setup += durability == Durability::power_loss ? "FULL;" : "OFF;";
    setup += "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=4000;";
    for (auto const name : names) {
        setup += "CREATE TABLE IF NOT EXISTS " + std::string{name} +
                 "(key TEXT PRIMARY KEY NOT NULL, value BLOB NOT NULL);";
    }
    if (sqlite3_exec(db, setup.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
        return failed(what, db);
    }
    bool ready = impl->prepare(impl->begin, "BEGIN IMMEDIATE") &&
                 impl->prepare(impl->commit, "COMMIT") && impl->prepare(impl->rollback, "ROLLBACK");
    for (std::size_t i = 0; i < table_count; ++i) {
        std::string const name{names[i]};
        auto& table = impl->tables[i];
        ready = ready &&
                impl->prepare(table.put,
                              "INSERT INTO " + name +
                                  "(key, value) VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE SET "
                                  "value = excluded.value") &&
                impl->prepare(table.remove, "DELETE FROM " + name + " WHERE key = ?1") &&
                impl->prepare(table.find, "SELECT value FROM " + name + " WHERE key = ?1") &&
                impl->prepare(table.all, "SELECT key, value FROM " + name + " ORDER BY key");
    }
    if (!ready) return failed(what, db);
    return std::unique_ptr<Database>{new Database{std::move(impl)}};
}

Result<void> Database::commit(std::span<Change const> changes) {
    auto& impl = *impl_;
    bool fine = impl.run(impl.begin);
    for (auto const& change : changes) fine = fine && impl.apply(change);
    fine = fine && impl.run(impl.commit);
    if (fine) return {};
    auto error = failed("write to the store", impl.db.get());
    if (sqlite3_get_autocommit(impl.db.get()) == 0) (void)impl.run(impl.rollback);
    return error;
}

Result<std::optional<std::string>> Database::find(Table table, std::string_view key) {
    Use use{impl_->of(table).find};
    use.key(key);
    auto const code = use.step();
    if (code == SQLITE_ROW) return std::optional{use.bytes(0)};
    if (code == SQLITE_DONE) return std::optional<std::string>{};
    return failed("read the store", impl_->db.get());
}

Result<std::vector<std::pair<std::string, std::string>>> Database::all(Table table) {
    std::vector<std::pair<std::string, std::string>> rows;
    Use use{impl_->of(table).all};
    auto code = use.step();
    for (; code == SQLITE_ROW; code = use.step()) rows.emplace_back(use.bytes(0), use.bytes(1));
    if (code != SQLITE_DONE) return failed("read the store", impl_->db.get());
    return rows;
}

}  // namespace tinkxx::local
