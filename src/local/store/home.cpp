#include "local/store/home.hpp"

#include "local/store/database.hpp"
#include "local/store/files.hpp"
#include "wire/json/json.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

namespace tinkxx::local {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 2> folders{"checkpoints", "ephemeral"};
constexpr std::string_view saving_form = "saving";
constexpr std::string_view removing_form = "removing";

Error unusable(fs::path const& folder, std::string const& why) {
    return Error{ErrorDetails{.kind = ErrorKind::validation,
                              .message = "home directory " + folder.string() + ": " + why,
                              .category = ErrorCategory::user,
                              .field = "home",
                              .value = folder.string()}};
}

std::string reason(int code) { return std::generic_category().message(code); }

bool is_word(std::string_view text) noexcept {
    return std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_' || c == '.';
    });
}

bool valid_id(std::string_view id) noexcept {
    return id.size() >= 8 && id.size() <= 64 && is_word(id);
}

std::string marker_text(std::string const& id) {
    std::string text;
    wire::JsonOut json{text};
    json.open_object();
    json.member("about", "the home of a tinkxx server; see docs/reliability.md");
    json.member("id", id);
    json.close_object();
    return text + "\n";
}

Result<std::string> read_marker(fs::path const& folder) {
    auto const damaged = [&](std::string const& why) {
        return unusable(folder, "its marker " + std::string{home_marker} + " is damaged (" + why +
                                    "); tinkxx home check --repair writes it again");
    };
    auto const text = read_small_file(folder / home_marker, std::size_t{64} << 10U);
    if (!text) return damaged(text.error().what());
    auto const document = wire::parse_json("marker", *text);
    if (!document) return damaged(document.error().what());
    auto const* const object = document->if_object();
    auto const* const id = object == nullptr ? nullptr : object->if_contains("id");
    if (id == nullptr || !id->is_string()) return damaged("it has no id");
    std::string out{id->get_string().data(), id->get_string().size()};
    if (!valid_id(out)) return damaged("its id is not one");
    return out;
}

Error symlink_found(fs::path const& folder, fs::path const& where) {
    return unusable(folder, where.string() +
                                " is a symlink, and a home must not have any; put what it leads "
                                "to in its place, or remove it");
}

/// Fails if anything that a server would read or write is a symlink.
Result<void> refuse_symlinks(fs::path const& folder) {
    auto const top = list_folder(folder);
    if (!top) return unusable(folder, top.error().what());
    for (auto const& entry : *top) {
        bool const used = entry.name == "lock" || entry.name == "backups" ||
                          entry.name.starts_with("tinkxx") ||
                          std::ranges::find(folders, entry.name) != folders.end();
        if (used && entry.kind == EntryKind::symlink) {
            return symlink_found(folder, folder / entry.name);
        }
    }
    for (auto const name : folders) {
        auto const place = folder / name;
        auto const kind = kind_of(place);
        if (kind != EntryKind::folder && kind != EntryKind::missing) {
            return unusable(folder, place.string() + " is " + describe_entry(place) +
                                        ", not a folder; move it elsewhere");
        }
        auto const entries = list_folder(place);
        if (!entries) return unusable(folder, entries.error().what());
        for (auto const& entry : *entries) {
            if (entry.kind == EntryKind::symlink) return symlink_found(folder, place / entry.name);
            if (entry.kind != EntryKind::folder) continue;
            auto const files = list_folder(place / entry.name);
            if (!files) return unusable(folder, files.error().what());
            for (auto const& file : *files) {
                if (file.kind == EntryKind::symlink) {
                    return symlink_found(folder, place / entry.name / file.name);
                }
            }
        }
    }
    return {};
}

Error foreign(fs::path const& folder, std::string const& why) {
    return unusable(folder, why + "; name an empty directory, or one that does not exist yet");
}

/// Locks the folder; the descriptor that holds the lock.
Result<Descriptor> lock_folder(fs::path const& folder) {
    auto const file = folder / "lock";
    Descriptor lock{::open(
        file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600)};
    if (lock.get() < 0) {
        int const code = errno;
        auto const kind = kind_of(file);
        if (kind != EntryKind::missing && kind != EntryKind::file) {
            return unusable(folder, file.string() + " is " + describe_entry(file) +
                                        ", not a regular file; remove it");
        }
        return unusable(folder, "it cannot be written to (" + reason(code) +
                                    "); name another directory, or change its permissions");
    }
    struct stat status {};
    if (::fstat(lock.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
        return unusable(folder, file.string() + " is " + describe_entry(file) +
                                    ", not a regular file; remove it");
    }
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
        std::array<char, 32> pid{};
        auto const size = ::read(lock.get(), pid.data(), pid.size() - 1);
        std::string who = "another server";
        if (size > 1) {
            std::string text{pid.data(), static_cast<std::size_t>(size)};
            if (text.back() == '\n') text.pop_back();
            who += " (process " + text + ")";
        }
        return unusable(folder, "it is in use by " + who + "; stop that one, or name another");
    }
    auto const pid = std::to_string(::getpid()) + "\n";
    // For the message above only; nothing depends on it.
    if (::ftruncate(lock.get(), 0) == 0) (void)!::pwrite(lock.get(), pid.data(), pid.size(), 0);
    return lock;
}

}  // namespace

Result<HomeLook> look_at_home(fs::path const& folder) {
    struct stat status {};
    if (::stat(folder.c_str(), &status) != 0) {
        if (errno == ENOENT) return HomeLook{};
        return unusable(folder,
                        "it cannot be read (" + reason(errno) + "); name another directory");
    }
    if (!S_ISDIR(status.st_mode)) {
        return unusable(folder, "it is not a directory; name another one");
    }
    auto const entries = list_folder(folder);
    if (!entries) return unusable(folder, entries.error().what());
    bool marked = false;
    bool empty = true;
    for (auto const& entry : *entries) {
        marked = marked || entry.name == home_marker;
        // What is left of a start that was cut short, and what a new disk has.
        bool const nothing = entry.name == "lock" || entry.name == "lost+found" ||
                             entry.name.starts_with(std::string{home_marker} + ".tmp-");
        empty = empty && nothing;
    }
    if (marked) {
        if (auto const none = refuse_symlinks(folder); !none) return none.error();
        auto id = read_marker(folder);
        if (!id) return id.error();
        return HomeLook{.state = HomeState::home, .id = *std::move(id)};
    }
    if (empty) return HomeLook{};
    HomeLook look{.state = HomeState::foreign, .why = "it is not empty, and not a home of tinkxx"};
    auto const database = folder / "tinkxx.sqlite";
    if (kind_of(database) == EntryKind::missing) return look;
    if (auto const none = refuse_symlinks(folder); !none) return none.error();
    auto const found = look_at_database(database);
    if (!found) {
        look.why += ": it has no " + std::string{home_marker} +
                    ", and its database says: " + found.error().what();
    } else if (found->version >= first_marked_schema) {
        look.why = "its marker " + std::string{home_marker} +
                   " is missing (tinkxx home check --repair writes it again)";
    } else if (found->ours) {
        look.state = HomeState::older;
    }
    return look;
}

bool valid_place(std::string_view relative) noexcept {
    auto const slash = relative.find('/');
    if (slash == std::string_view::npos) return false;
    auto const parent = relative.substr(0, slash);
    auto const name = relative.substr(slash + 1);
    if (name.size() > 230 || !is_word(name)) return false;
    auto const digits = name.find_first_not_of("0123456789");
    if (digits == 0 || ordinal_of(name) == 0) return false;
    if (parent == "ephemeral") return digits == std::string_view::npos;
    return parent == "checkpoints" && digits != std::string_view::npos && name[digits] == '-';
}

std::int64_t ordinal_of(std::string_view folder_name) noexcept {
    // Far beyond what a server can count to, and far from the end of the numbers.
    constexpr std::int64_t most = 1'000'000'000'000'000;
    std::int64_t number = 0;
    auto const read =
        std::from_chars(folder_name.data(), folder_name.data() + folder_name.size(), number);
    return read.ec == std::errc{} && number > 0 && number < most ? number : 0;
}

Result<std::unique_ptr<Home>> Home::open(fs::path folder, std::string const& new_id) {
    return take(std::move(folder), new_id, false);
}

Result<std::unique_ptr<Home>> Home::restore(fs::path folder, std::string const& id) {
    return take(std::move(folder), id, true);
}

Result<std::unique_ptr<Home>> Home::take(fs::path folder, std::string const& id, bool restore) {
    bool const temporary = folder.empty();
    std::error_code error;
    if (temporary) {
        auto base = fs::temp_directory_path(error);
        if (error) base = "/tmp";
        auto pattern = (base / "tinkxx-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) {
            return unusable(base, "no temporary directory can be made in it (" + reason(errno) +
                                      "); name another one");
        }
        folder = pattern;
    } else {
        // Something else must be left as it is, down to a lock file.
        auto const look = look_at_home(folder);
        if (!look && !restore) return look.error();
        if (look && look->state == HomeState::foreign && !restore)
            return foreign(folder, look->why);
        fs::create_directories(folder, error);
        if (error) {
            return unusable(folder,
                            "it cannot be made (" + error.message() + "); name another directory");
        }
    }
    auto lock = lock_folder(folder);
    if (!lock) return lock.error();
    // Somebody else may have been first.
    auto look = look_at_home(folder);
    if (!look && !restore) return look.error();
    if (!look || restore) look = HomeLook{.state = HomeState::foreign};
    if (look->state == HomeState::foreign && !restore) return foreign(folder, look->why);
    (void)::chmod(folder.c_str(), 0700);
    if (look->state != HomeState::home) {
        look->id = id;
        if (auto const written = write_small_file(folder / home_marker, marker_text(id));
            !written) {
            return unusable(folder, std::string{"it cannot be written to ("} +
                                        written.error().what() +
                                        "); name another directory, or make room");
        }
    }
    for (auto const name : folders) {
        auto const place = folder / name;
        if (::mkdir(place.c_str(), 0700) == 0 || errno == EEXIST) continue;
        return unusable(folder, std::string{name} + " cannot be made in it (" + reason(errno) +
                                    "); name another directory, or change its permissions");
    }
    return std::unique_ptr<Home>{
        new Home{std::move(folder), std::move(look->id), lock->release(), temporary}};
}

Home::~Home() {
    if (temporary_) {
        std::error_code ignored;
        fs::remove_all(folder_, ignored);
    }
    ::close(lock_);
}

std::string Home::temporary_name(std::string_view relative, std::string_view kind) const {
    auto const slash = relative.find('/');
    auto name = std::string{relative.substr(0, slash + 1)} + ".tinkxx-" + id_.substr(0, 8) + "-";
    return name.append(kind).append("-").append(relative.substr(slash + 1));
}

std::string Home::saving(std::string_view relative) const {
    return temporary_name(relative, saving_form);
}

std::string Home::removing(std::string_view relative) const {
    return temporary_name(relative, removing_form);
}

std::optional<Home::Temporary> Home::temporary(std::string_view parent,
                                               std::string_view name) const {
    auto const mine = ".tinkxx-" + id_.substr(0, 8) + "-";
    if (!name.starts_with(mine)) return std::nullopt;
    name.remove_prefix(mine.size());
    for (auto const& [form, kind] : {std::pair{saving_form, Temporary::Kind::saving},
                                     std::pair{removing_form, Temporary::Kind::removing}}) {
        if (!name.starts_with(form) || name.size() <= form.size() || name[form.size()] != '-') {
            continue;
        }
        auto relative = std::string{parent} + "/";
        relative += name.substr(form.size() + 1);
        if (valid_place(relative)) return Temporary{.kind = kind, .relative = std::move(relative)};
        // The form in which a folder is written before it gets its temporary name.
        auto const tail = relative.rfind(".tmp-");
        if (kind == Temporary::Kind::saving && tail != std::string::npos &&
            valid_place(std::string_view{relative}.substr(0, tail))) {
            return Temporary{.kind = kind};
        }
    }
    return std::nullopt;
}

}  // namespace tinkxx::local
