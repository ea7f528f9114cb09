#include <tinkxx/local/home.hpp>

#include "base/common/entropy.hpp"
#include "local/store/database.hpp"
#include "local/store/files.hpp"
#include "local/store/home.hpp"
#include "local/store/stored.hpp"
#include "wire/json/json.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

namespace tinkxx::local {

namespace {

namespace fs = std::filesystem;

template <class T>
T or_raise(Result<T> result) {
    if (!result) result.error().raise();
    if constexpr (!std::is_void_v<T>) return *std::move(result);
}

Error unfit(fs::path const& folder, std::string const& why) {
    return Error{ErrorDetails{.kind = ErrorKind::validation,
                              .message = "home check: " + folder.string() + ": " + why,
                              .category = ErrorCategory::user,
                              .field = "home",
                              .value = folder.string()}};
}

/// Whether others than the owner can read it.
bool open_to_others(fs::path const& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && (status.st_mode & 077U) != 0;
}

WallTime time_of(fs::path const& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return {};
    return WallTime{std::chrono::seconds{status.st_mtim.tv_sec}};
}

/// A name that a checkpoint may have, made of what a folder is called.
std::string name_from(std::string_view folder) {
    std::string name;
    auto const digits = folder.find_first_not_of("0123456789");
    if (digits != std::string_view::npos && digits > 0 && folder[digits] == '-') {
        folder = folder.substr(digits + 1);
    }
    for (char const c : folder) {
        bool const fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
        name += fits ? c : '_';
    }
    return valid_name(name) ? name.substr(0, 190) : "adopted";
}

/// What a PEFT folder without a row of its own tells of itself.
std::optional<CheckpointRow> row_from_peft(fs::path const& folder) {
    auto const text = read_small_file(folder / "adapter_config.json", std::size_t{1} << 20U);
    if (!text || kind_of(folder / "adapter_model.safetensors") != EntryKind::file) {
        return std::nullopt;
    }
    auto const document = wire::parse_json("adapter_config.json", *text);
    auto const* const object = document ? document->if_object() : nullptr;
    if (object == nullptr) return std::nullopt;
    auto const* const base = object->if_contains("base_model_name_or_path");
    auto const* const rank = object->if_contains("r");
    auto const* const targets = object->if_contains("target_modules");
    if (base == nullptr || !base->is_string() || rank == nullptr || !rank->is_int64() ||
        rank->get_int64() < 1 || rank->get_int64() > 1024 || targets == nullptr ||
        !targets->is_array()) {
        return std::nullopt;
    }
    CheckpointRow row;
    row.base_model = std::string{base->get_string()};
    row.training = {
        .rank = rank->get_int64(), .train_attn = false, .train_mlp = false, .train_unembed = false};
    for (auto const& target : targets->get_array()) {
        if (!target.is_string()) return std::nullopt;
        auto const& name = target.get_string();
        row.training.train_attn |= name == "q_proj";
        row.training.train_mlp |= name == "gate_proj";
        row.training.train_unembed |= name == "lm_head";
    }
    bool const state = kind_of(folder / "optimizer.safetensors") == EntryKind::file;
    row.path = {.run = "adopted:train:0",
                .kind = state ? Kind::weights : Kind::sampler_weights,
                .name = name_from(folder.filename().string())};
    row.created = time_of(folder / "adapter_model.safetensors");
    return row;
}

/// The row of a checkpoint that no database names; none if it is no checkpoint.
std::optional<CheckpointRow> row_of_folder(fs::path const& folder) {
    auto marks = mark_files(folder);
    if (!marks || marks->empty()) return std::nullopt;
    std::optional<CheckpointRow> row;
    if (auto const note = read_small_file(folder / checkpoint_note, std::size_t{1} << 20U)) {
        if (auto read = decode_checkpoint_row(*note); read && read->files == *marks) {
            row = *std::move(read);
        }
    }
    if (!row) row = row_from_peft(folder);
    if (!row) return std::nullopt;
    row->files = *std::move(marks);
    row->size_bytes = 0;
    for (auto const& [name, mark] : row->files) row->size_bytes += mark.bytes;
    return row;
}

class Check {
public:
    Check(fs::path folder, HomeCheckOptions const& options)
        : folder_{std::move(folder)}, options_{options} {
        report_.home = folder_;
    }

    HomeReport run() {
        if (!take_home()) return std::move(report_);
        check_permissions();
        if (!open_database()) return std::move(report_);
        stored_ = or_raise(read_stored(*database_));
        check_rows();
        inventory_ = or_raise(take_inventory(*home_, stored_));
        finish_what_was_cut_short();
        check_unaccounted();
        check_missing();
        check_checkpoints();
        report_.sessions = stored_.sessions.size();
        report_.runs = stored_.runs.size();
        report_.checkpoints = stored_.checkpoints.size();
        for (auto const& [path, row] : stored_.checkpoints) {
            report_.checkpoint_bytes += static_cast<std::uint64_t>(row.size_bytes);
        }
        return std::move(report_);
    }

private:
    void found(std::string what, std::string problem, std::string done = {}) {
        report_.findings.push_back({std::move(what), std::move(problem), std::move(done)});
    }
    void write(std::vector<Change> const& changes) { or_raise(database_->commit(changes)); }

    /// False if there is nothing more to look at.
    bool take_home() {
        auto const look = look_at_home(folder_);
        bool const marker_damaged = !look && kind_of(folder_ / home_marker) == EntryKind::file;
        if (!look && !marker_damaged) look.error().raise();
        if (look && look->state == HomeState::fresh) {
            unfit(folder_, "there is no home here; name the folder that tinkxx serve was given")
                .raise();
        }
        bool const whole =
            look && (look->state == HomeState::home || look->state == HomeState::older);
        if (whole) {
            if (look->state == HomeState::older) {
                found(
                    std::string{home_marker},
                    "the home is of an older version; a server, or --repair, brings it up to date",
                    options_.repair ? "brought up to date" : "");
                if (!options_.repair) {
                    report_.schema = or_raise(look_at_database(database_file())).version;
                    return false;
                }
            }
            home_ = or_raise(Home::open(folder_, new_id()));
        } else {
            // Only a database of our own proves that this is a home that lost its marker.
            auto const known = look_at_database(database_file());
            if (!known || !known->ours) {
                unfit(folder_,
                      "it is not a home of tinkxx; name the folder that tinkxx serve was given")
                    .raise();
            }
            found(std::string{home_marker},
                  marker_damaged ? "the marker of the home is damaged; --repair writes it again"
                                 : "the marker of the home is missing; --repair writes it again",
                  options_.repair ? "written again" : "");
            if (!options_.repair) return false;
            home_ = or_raise(
                Home::restore(folder_, known->home_id.empty() ? new_id() : known->home_id));
        }
        report_.id = home_->id();
        return true;
    }

    [[nodiscard]] fs::path database_file() const { return folder_ / "tinkxx.sqlite"; }
    static std::string new_id() {
        std::string id;
        for (int i = 0; i < 2; ++i) {
            constexpr std::string_view digits = "0123456789abcdef";
            auto bits = base::random_seed();
            for (int j = 0; j < 16; ++j, bits >>= 4U) id += digits[bits & 15U];
        }
        return id;
    }

    void check_permissions() {
        // Opening has closed the home itself.
        auto const file = database_file();
        if (kind_of(file) == EntryKind::file && open_to_others(file)) {
            bool const closed = options_.repair && ::chmod(file.c_str(), 0600) == 0;
            found("tinkxx.sqlite",
                  "other users can read the secret that signs links; --repair forbids it",
                  closed ? "only its owner can read it now" : "");
        }
    }

    bool open_database() {
        auto const look = look_at_database(database_file());
        if (kind_of(database_file()) == EntryKind::missing || (look && look->version == 0)) {
            found("tinkxx.sqlite", "the database is missing; --repair makes one of the checkpoints",
                  options_.repair ? "made again" : "");
            if (!options_.repair) return false;
        }
        if (look && look->version > 0 && look->version < schema_version && !options_.repair) {
            found("tinkxx.sqlite",
                  "the database is of an older version; a server, or --repair, "
                  "brings it up to date");
            report_.schema = look->version;
            return false;
        }
        auto opened = Database::open(database_file(), {.durability = Durability::power_loss,
                                                       .home_id = home_->id(),
                                                       .backups = home_->backups()});
        if (opened) {
            database_ = *std::move(opened);
            auto const wrong = database_->check();
            if (wrong && wrong->empty() && read_stored(*database_)) {
                for (auto const& note : database_->notes()) found("tinkxx.sqlite", note, "noted");
                report_.schema = schema_version;
                return true;
            }
            salvage_reason_ = wrong ? some_of(*wrong, 2) : wrong.error().what();
            if (salvage_reason_.empty()) salvage_reason_ = "its rows cannot be read";
        } else {
            // A newer schema, or the database of another home, is not damage.
            if (look && (look->version > schema_version ||
                         (!look->home_id.empty() && look->home_id != home_->id()))) {
                opened.error().raise();
            }
            salvage_reason_ = opened.error().what();
        }
        found("tinkxx.sqlite",
              "the database is damaged (" + salvage_reason_ +
                  "); --repair keeps it in backups/ and saves what can be read",
              options_.repair ? "replaced by what could be read" : "");
        if (!options_.repair) return false;
        salvage();
        report_.schema = schema_version;
        return true;
    }

    /// A new database with the rows that can still be read; the damaged one is kept.
    void salvage() {
        database_.reset();
        auto rows = salvage_rows(database_file());
        // The new one has the id of this home, whatever the old one says.
        std::erase_if(rows, [](Change const& row) {
            return row.table == Table::meta && row.key == "home_id";
        });
        auto const fresh = folder_ / "tinkxx.sqlite.new";
        std::error_code ignored;
        for (auto const* suffix : {"", "-wal", "-shm"}) {
            fs::remove(fresh.string() + suffix, ignored);  // of a repair that was cut short
        }
        {
            auto made = or_raise(Database::open(fresh, {.durability = Durability::power_loss,
                                                        .home_id = home_->id(),
                                                        .backups = home_->backups()}));
            or_raise(made->commit(rows));
        }
        if (::mkdir(home_->backups().c_str(), 0700) != 0 && errno != EEXIST) {
            unfit(folder_, "backups cannot be made (" + std::generic_category().message(errno) +
                               "); nothing was changed")
                .raise();
        }
        auto kept = home_->backups() / "damaged.sqlite";
        for (int i = 2; kind_of(kept) != EntryKind::missing; ++i) {
            kept = home_->backups() / ("damaged-" + std::to_string(i) + ".sqlite");
        }
        // The log of the old one would be read as that of the new one.
        for (auto const* suffix : {"-wal", "-shm", "-journal"}) {
            auto const log = fs::path{database_file().string() + suffix};
            if (kind_of(log) != EntryKind::missing) {
                or_raise(rename_entry(log, kept.string() + suffix));
            }
        }
        if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, database_file().c_str(),
                        RENAME_EXCHANGE) != 0) {
            or_raise(rename_entry(database_file(), kept));
            or_raise(rename_entry(fresh, database_file()));
        } else {
            or_raise(rename_entry(fresh, kept));
        }
        database_ = or_raise(Database::open(database_file(), {.durability = Durability::power_loss,
                                                              .home_id = home_->id(),
                                                              .backups = home_->backups()}));
    }

    void check_rows() {
        for (auto const& row : stored_.bad) {
            found(std::string{to_string(row.table)} + " " + row.key,
                  "the row cannot be read (" + row.why +
                      "); a server, or --repair, puts it into the table quarantine",
                  options_.repair ? "put into quarantine" : "");
        }
        if (options_.repair && !stored_.bad.empty()) write(quarantine(stored_.bad));
    }

    void finish_what_was_cut_short() {
        // The next server does all of this by itself, so that none of it is a finding.
        if (!options_.repair) return;
        for (auto const& [from, to] : inventory_.to_finish) {
            or_raise(rename_entry(home_->place(from), home_->place(to)));
        }
        std::error_code ignored;
        for (auto const& name : inventory_.abandoned) fs::remove_all(home_->place(name), ignored);
    }

    void check_unaccounted() {
        for (auto const& name : inventory_.unaccounted) {
            auto const place = home_->place(name);
            auto row = kind_of(place) == EntryKind::folder ? row_of_folder(place) : std::nullopt;
            if (row) {
                adopt(name, *std::move(row));
                continue;
            }
            std::string done;
            if (options_.remove) {
                std::error_code failed;
                fs::remove_all(place, failed);
                done = failed ? "" : "removed";
            }
            found(name,
                  "the database does not know it, and it is no checkpoint that could be adopted; "
                  "it is kept until you remove it, or --remove does",
                  std::move(done));
        }
    }

    void adopt(std::string const& name, CheckpointRow row) {
        if (!options_.repair) {
            return found(name, "the database does not know this checkpoint of " + row.base_model +
                                   "; --repair adopts it as " + row.path.text());
        }
        auto const wanted = row.path.name;
        for (int i = 2; stored_.checkpoints.contains(row.path); ++i) {
            row.path.name = wanted.substr(0, 190) + "-" + std::to_string(i);
        }
        row.ordinal = inventory_.next_ordinal++;
        row.folder = name;
        if (!valid_place(name) || !name.starts_with("checkpoints/")) {
            row.folder =
                "checkpoints/" + std::to_string(inventory_.next_ordinal++) + "-" + row.path.name;
            or_raise(rename_entry(home_->place(name), home_->place(row.folder)));
        }
        row.is_public = false;
        // A time that is over would have it removed at once.
        row.expires.reset();
        std::vector<Change> changes{{Table::checkpoint, row.path.text(), encode(row)}};
        add_owner(row, changes);
        write(changes);
        stored_.checkpoints[row.path] = row;
        found(name, "the database did not know this checkpoint of " + row.base_model,
              "adopted as " + row.path.text());
    }

    /// The run and the session that a checkpoint belongs to, if the database has lost them.
    void add_owner(CheckpointRow const& row, std::vector<Change>& changes) {
        auto const session = row.path.run.substr(0, row.path.run.find(':'));
        if (!stored_.runs.contains(row.path.run)) {
            RunRow const run{.id = row.path.run,
                             .session = session,
                             .base_model = row.base_model,
                             .training = row.training,
                             .created = row.created,
                             .last_request = row.created};
            stored_.runs[run.id] = run;
            changes.push_back({Table::run, run.id, encode(run)});
        }
        if (!stored_.sessions.contains(session)) {
            SessionRow const owner{.id = session,
                                   .created = row.created,
                                   .status = SessionPhase::finished,
                                   .reason = "success",
                                   .detail = "holds adopted checkpoints"};
            stored_.sessions[session] = owner;
            changes.push_back({Table::session, session, encode(owner)});
        }
    }

    void check_missing() {
        std::set<std::string> const missing{inventory_.missing.begin(), inventory_.missing.end()};
        if (missing.empty()) return;
        std::vector<BadRow> lost;
        for (auto const& [path, row] : stored_.checkpoints) {
            if (missing.contains(row.folder)) {
                lost.push_back({Table::checkpoint, path.text(), encode(row), row.folder});
            }
        }
        for (auto const& [id, row] : stored_.samplers) {
            if (missing.contains(row.folder)) {
                lost.push_back({Table::sampler, id, encode(row), row.folder});
            }
        }
        for (auto const& row : lost) {
            found(std::string{to_string(row.table)} + " " + row.key,
                  "its folder " + row.why +
                      " is missing; put it back, or --repair puts the row "
                      "into the table quarantine",
                  options_.repair ? "put into quarantine" : "");
        }
        if (!options_.repair) return;
        write(quarantine(lost));
        std::erase_if(stored_.checkpoints,
                      [&](auto const& entry) { return missing.contains(entry.second.folder); });
    }

    void check_checkpoints() {
        std::size_t done = 0;
        for (auto& [path, row] : stored_.checkpoints) {
            if (options_.progress) {
                options_.progress(row.folder, done++, stored_.checkpoints.size());
            }
            auto const place = home_->place(row.folder);
            if (kind_of(place) != EntryKind::folder) continue;  // told above
            if (row.files.empty()) {
                auto marks = mark_files(place);
                if (!marks) {
                    found(row.folder, marks.error().what());
                    continue;
                }
                if (options_.repair) {
                    row.files = *std::move(marks);
                    write({{Table::checkpoint, path.text(), encode(row)}});
                }
                found(row.folder,
                      "it has no checksums: it was saved by an older version; --repair adds them",
                      options_.repair ? "checksums added" : "");
                continue;
            }
            if (auto const whole = check_files(place, row.files); !whole) {
                found(row.folder, std::string{"the checkpoint "} + path.text() +
                                      " is damaged: " + whole.error().what() +
                                      "; restore the folder from a copy, or delete it");
            }
        }
    }

    fs::path folder_;
    HomeCheckOptions const& options_;
    HomeReport report_{};
    std::unique_ptr<Home> home_{};
    std::unique_ptr<Database> database_{};
    std::string salvage_reason_{};
    Stored stored_{};
    Inventory inventory_{};
};

}  // namespace

bool HomeReport::good() const noexcept {
    return std::ranges::none_of(findings, [](auto const& one) { return one.done.empty(); });
}

HomeReport check_home(fs::path const& folder, HomeCheckOptions const& options) {
    return Check{folder, options}.run();
}

}  // namespace tinkxx::local
