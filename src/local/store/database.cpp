#include "local/store/database.hpp"

#include "local/store/files.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <system_error>

namespace tinkxx::local {

namespace {

constexpr std::array<std::string_view, table_count> names{
    "meta",    "session", "run",   "sampler", "checkpoint",
    "request", "result",  "usage", "audit",   "quarantine"};

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
    std::vector<std::string> notes{};

    /// Makes all tables that are missing, says which version this is and whose, all at once.
    [[nodiscard]] Result<void> bring_up(DatabaseLook const& look, std::string const& home_id);

    [[nodiscard]] PerTable& of(Table table) { return tables[static_cast<std::size_t>(table)]; }

    [[nodiscard]] bool prepare(Statement& out, std::string const& sql) {
        sqlite3_stmt* made = nullptr;
        auto const code =
            sqlite3_prepare_v3(db.get(), sql.c_str(), static_cast<int>(sql.size()) + 1,
                               SQLITE_PREPARE_PERSISTENT, &made, nullptr);
        out.reset(made);
        return code == SQLITE_OK;
    }

    /// Prepares all statements.
    [[nodiscard]] bool prepare_all();

    [[nodiscard]] bool run(Statement const& statement) {
        return Use{statement}.step() == SQLITE_DONE;
    }

    [[nodiscard]] bool apply(Change const& change) {
        auto& table = of(change.table);
        auto const* const value = change.shared  ? change.shared.get()
                                  : change.value ? &*change.value
                                                 : nullptr;
        Use use{value != nullptr ? table.put : table.remove};
        use.key(change.key);
        if (value != nullptr) use.value(*value);
        return use.step() == SQLITE_DONE;
    }
};

std::string_view to_string(Table table) noexcept { return names[static_cast<std::size_t>(table)]; }

namespace {

namespace fs = std::filesystem;

Error refused(fs::path const& file, std::string const& why) {
    return Error{ErrorDetails{.kind = ErrorKind::validation,
                              .message = file.string() + " " + why,
                              .category = ErrorCategory::user,
                              .field = "home",
                              .value = file.string()}};
}

/// SQLite would wait for a FIFO and follow a symlink.
Result<void> check_types(fs::path const& file) {
    for (auto const* suffix : {"", "-wal", "-shm", "-journal"}) {
        auto const path = fs::path{file.string() + suffix};
        auto const kind = kind_of(path);
        if (kind == EntryKind::missing || kind == EntryKind::file) continue;
        return refused(path,
                       "is " + describe_entry(path) + ", not a regular file; move it elsewhere");
    }
    return {};
}

/// The first column of the first row of a query; none if there is no row.
Result<std::optional<std::string>> first_value(sqlite3* db, std::string const& sql) {
    sqlite3_stmt* made = nullptr;
    auto const prepared = sqlite3_prepare_v2(db, sql.c_str(), -1, &made, nullptr);
    Statement const statement{made};
    if (prepared != SQLITE_OK) return failed("read the database", db);
    auto const code = sqlite3_step(made);
    if (code == SQLITE_DONE) return std::optional<std::string>{};
    if (code != SQLITE_ROW) return failed("read the database", db);
    auto const* const data = static_cast<char const*>(sqlite3_column_blob(made, 0));
    auto const size = static_cast<std::size_t>(sqlite3_column_bytes(made, 0));
    return std::optional{data == nullptr ? std::string{} : std::string{data, size}};
}

Result<std::vector<std::string>> tables_of(sqlite3* db) {
    std::vector<std::string> found;
    for (auto const name : names) {
        auto const there =
            first_value(db, "SELECT name FROM sqlite_master WHERE type='table' AND name='" +
                                std::string{name} + "'");
        if (!there) return there.error();
        if (*there) found.emplace_back(name);
    }
    return found;
}

Result<DatabaseLook> look_at(sqlite3* db) {
    DatabaseLook look;
    auto const version = first_value(db, "PRAGMA user_version");
    if (!version) return version.error();
    auto const tables = tables_of(db);
    if (!tables) return tables.error();
    auto const has = [&](std::string_view name) {
        return std::ranges::find(*tables, name) != tables->end();
    };
    look.ours = has("meta") && has("session") && has("checkpoint");
    look.version = std::strtoll(version->value_or("0").c_str(), nullptr, 10);
    if (look.version == 0 && !tables->empty()) look.version = 1;
    if (has("meta")) {
        // Without the index: if that is damaged, a repair still has to get this far.
        auto const id = first_value(db, "SELECT value FROM meta NOT INDEXED WHERE key='home_id'");
        if (!id) return id.error();
        look.home_id = id->value_or("");
    }
    return look;
}

bool execute(sqlite3* db, std::string const& sql) {
    return sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
}

/// A copy of the whole database under a name that nothing had before.
Result<std::string> back_up(sqlite3* db, fs::path const& folder, std::int64_t version) {
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
        return refused(folder, "cannot be made (" + std::generic_category().message(errno) +
                                   "), and the database is not changed without a backup");
    }
    auto const stem = "schema-" + std::to_string(version);
    auto target = folder / (stem + ".sqlite");
    for (int i = 2; kind_of(target) != EntryKind::missing; ++i) {
        target = folder / (stem + "-" + std::to_string(i) + ".sqlite");
    }
    auto const temporary = fs::path{target.string() + ".tmp"};
    ::unlink(temporary.c_str());  // of a backup that was cut short
    {
        Descriptor const made{
            ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)};
        sqlite3* raw = nullptr;
        auto const opened =
            sqlite3_open_v2(temporary.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr);
        std::unique_ptr<sqlite3, CloseDatabase> const copy{raw};
        auto* const backup =
            opened == SQLITE_OK ? sqlite3_backup_init(raw, "main", db, "main") : nullptr;
        auto const stepped = backup == nullptr ? SQLITE_ERROR : sqlite3_backup_step(backup, -1);
        if (backup == nullptr || sqlite3_backup_finish(backup) != SQLITE_OK ||
            stepped != SQLITE_DONE) {
            auto const why = failed("back up the database to " + target.string(), raw);
            ::unlink(temporary.c_str());
            return why;
        }
        if (made.get() >= 0) (void)::fsync(made.get());
    }
    if (auto const renamed = rename_entry(temporary, target); !renamed) return renamed.error();
    return target.string();
}

}  // namespace

Database::Database(std::unique_ptr<Impl> impl) : impl_{std::move(impl)} {}
Database::~Database() = default;

bool Database::Impl::prepare_all() {
    bool ready = prepare(begin, "BEGIN IMMEDIATE") && prepare(commit, "COMMIT") &&
                 prepare(rollback, "ROLLBACK");
    for (std::size_t i = 0; i < table_count; ++i) {
        std::string const name{names[i]};
        auto& table = tables[i];
        ready = ready &&
                prepare(table.put, "INSERT INTO " + name +
                                       "(key, value) VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE SET "
                                       "value = excluded.value") &&
                prepare(table.remove, "DELETE FROM " + name + " WHERE key = ?1") &&
                prepare(table.find, "SELECT value FROM " + name + " WHERE key = ?1") &&
                prepare(table.all, "SELECT key, value FROM " + name + " ORDER BY key");
    }
    return ready;
}

Result<void> Database::Impl::bring_up(DatabaseLook const& look, std::string const& home_id) {
    auto const there = tables_of(db.get());
    if (!there) return there.error();
    if (look.version == schema_version && there->size() == names.size() && !look.home_id.empty()) {
        return {};
    }
    std::string sql = "BEGIN IMMEDIATE;";
    for (auto const name : names) {
        if (std::ranges::find(*there, name) != there->end()) continue;
        sql += "CREATE TABLE " + std::string{name} +
               "(key TEXT PRIMARY KEY NOT NULL, value BLOB NOT NULL);";
        // Each older schema had all tables but those in quarantine.
        if (look.version == schema_version || (look.version > 0 && name != names.back())) {
            notes.push_back("the table " + std::string{name} +
                            " was missing from the database and was made again, empty");
        }
    }
    // The id has no character that would end the text; it was checked when it was read or made.
    sql += "INSERT INTO meta(key, value) VALUES('home_id', '" + home_id +
           "') ON CONFLICT(key) DO NOTHING;"
           "PRAGMA user_version=" +
           std::to_string(schema_version) + ";COMMIT;";
    if (execute(db.get(), sql)) return {};
    auto const why = failed("write to the database", db.get());
    if (sqlite3_get_autocommit(db.get()) == 0) (void)execute(db.get(), "ROLLBACK");
    return why;
}

Result<DatabaseLook> look_at_database(fs::path const& file) {
    if (auto const types = check_types(file); !types) return types.error();
    sqlite3* raw = nullptr;
    auto const opened =
        sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
    std::unique_ptr<sqlite3, CloseDatabase> const db{raw};
    if (opened != SQLITE_OK) return failed("open " + file.string(), raw);
    return look_at(raw);
}

std::vector<Change> salvage_rows(fs::path const& file) {
    std::vector<Change> rows;
    if (!check_types(file)) return rows;
    sqlite3* raw = nullptr;
    auto const opened =
        sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
    std::unique_ptr<sqlite3, CloseDatabase> const db{raw};
    if (opened != SQLITE_OK) return rows;
    (void)execute(raw, "PRAGMA wal_checkpoint(TRUNCATE)");
    for (std::size_t i = 0; i < table_count; ++i) {
        std::map<std::string, std::string> found;
        for (auto const* order : {"ASC", "DESC"}) {
            auto const sql = "SELECT key, value FROM " + std::string{names[i]} +
                             " NOT INDEXED ORDER BY rowid " + order;
            sqlite3_stmt* made = nullptr;
            auto const prepared = sqlite3_prepare_v2(raw, sql.c_str(), -1, &made, nullptr);
            Statement const statement{made};
            if (prepared != SQLITE_OK) continue;
            Use use{statement};
            while (use.step() == SQLITE_ROW) found.emplace(use.bytes(0), use.bytes(1));
        }
        for (auto& [key, value] : found) {
            rows.push_back({static_cast<Table>(i), key, std::move(value)});
        }
    }
    return rows;
}

namespace {

/// Makes the file if need be; only its owner may read it. SQLite would let everybody.
Result<void> make_private(fs::path const& file) {
    Descriptor const made{
        ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600)};
    if (made.get() < 0) {
        return refused(file, "cannot be opened (" + std::generic_category().message(errno) +
                                 "); change its permissions, or name another directory");
    }
    (void)::fchmod(made.get(), 0600);
    return {};
}

}  // namespace

Result<std::unique_ptr<Database>> Database::open(fs::path const& file,
                                                 DatabaseOptions const& options) {
    auto const what = "open " + file.string();
    if (auto const types = check_types(file); !types) return types.error();
    if (auto const made = make_private(file); !made) return made.error();
    auto impl = std::make_unique<Impl>();
    sqlite3* db = nullptr;
    auto const flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    auto const opened = sqlite3_open_v2(file.c_str(), &db, flags, nullptr);
    impl->db.reset(db);
    if (opened != SQLITE_OK) return failed(what, db);
    // How far to go comes first: the change of the journal is a write already.
    std::string setup = "PRAGMA synchronous=";
    setup += options.durability == Durability::power_loss ? "FULL;" : "OFF;";
    auto look = look_at(db);
    if (!look) return look.error();
    if (look->version > schema_version) {
        return refused(file, "has the schema " + std::to_string(look->version) +
                                 " of a newer tinkxx, and this one reads up to " +
                                 std::to_string(schema_version) +
                                 "; use that tinkxx, or name another directory");
    }
    if (!look->home_id.empty() && look->home_id != options.home_id) {
        return refused(file, "belongs to another home: it has the id " + look->home_id +
                                 ", and the marker of this one has " + options.home_id +
                                 "; put back the database that belongs here");
    }
    setup += "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=4000;";
    if (!execute(db, setup)) return failed(what, db);
    if (look->version > 0 && look->version < schema_version) {
        auto const copy = back_up(db, options.backups, look->version);
        if (!copy) return copy.error();
        impl->notes.push_back("the database was brought from schema " +
                              std::to_string(look->version) + " to " +
                              std::to_string(schema_version) + "; what it was is in " + *copy);
    }
    if (auto const prepared = impl->bring_up(*look, options.home_id); !prepared) {
        return prepared.error();
    }
    if (!impl->prepare_all()) return failed(what, db);
    return std::unique_ptr<Database>{new Database{std::move(impl)}};
}

std::vector<std::string> const& Database::notes() const noexcept { return impl_->notes; }

Result<std::vector<std::string>> Database::check() {
    std::vector<std::string> found;
    sqlite3_stmt* made = nullptr;
    auto const prepared =
        sqlite3_prepare_v2(impl_->db.get(), "PRAGMA integrity_check", -1, &made, nullptr);
    Statement const statement{made};
    if (prepared != SQLITE_OK) return failed("check the database", impl_->db.get());
    auto code = sqlite3_step(made);
    for (; code == SQLITE_ROW; code = sqlite3_step(made)) {
        std::string const line{reinterpret_cast<char const*>(sqlite3_column_text(made, 0))};
        if (line != "ok") found.push_back(line);
    }
    if (code != SQLITE_DONE) return failed("check the database", impl_->db.get());
    return found;
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
