#pragma once

#include <tinkxx/result.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::local {

/// The marker of a home, by its name in the folder.
inline constexpr std::string_view home_marker = "tinkxx-home.json";

enum class HomeState : std::uint8_t {
    fresh,    ///< there is nothing in it
    home,     ///< it has a marker
    older,    ///< of a version that wrote no marker
    foreign,  ///< something else
};

struct HomeLook {
    HomeState state{HomeState::fresh};
    /// From the marker.
    std::string id{};
    /// Why a foreign folder is none of ours.
    std::string why{};
};
/// What a folder is to a server. Writes nothing. Fails for a folder that cannot be read, a marker
/// that is damaged, and for a home with a symlink in it.
[[nodiscard]] Result<HomeLook> look_at_home(std::filesystem::path const& folder);

/// Whether a row may name this as its folder: `checkpoints/12-name` or `ephemeral/12`. Nothing else
/// is ever renamed or removed.
[[nodiscard]] bool valid_place(std::string_view relative) noexcept;
/// The number that a folder's name begins with; 0 if there is none.
[[nodiscard]] std::int64_t ordinal_of(std::string_view folder_name) noexcept;

/// The folder in which a server keeps everything, locked against a second server.
///
///     tinkxx-home.json  says that this is a home, and which one
///     tinkxx.sqlite     sessions, runs, checkpoints, requests and results
///     checkpoints/      one folder for each checkpoint
///     ephemeral/        weights that were saved under no name, until their session ends
///     backups/          the database before it was changed by a newer version
///
/// Only its owner can read it: the database has the secret that signs links.
class Home {
public:
    /// Makes the folder if need be, locks it and writes its marker if it is new. An empty path is a
    /// temporary folder, which is removed in the end. Fails if another server holds it, it cannot
    /// be written to, or it holds things that are not a server's; nothing has changed then.
    /// `new_id` is the id of a home that has none.
    [[nodiscard]] static Result<std::unique_ptr<Home>> open(std::filesystem::path folder,
                                                            std::string const& new_id);
    /// As above, for a home that has lost its marker: writes it with this id.
    [[nodiscard]] static Result<std::unique_ptr<Home>> restore(std::filesystem::path folder,
                                                               std::string const& id);
    ~Home();
    Home(Home const&) = delete;
    Home& operator=(Home const&) = delete;

    [[nodiscard]] std::filesystem::path const& folder() const noexcept { return folder_; }
    [[nodiscard]] std::string const& id() const noexcept { return id_; }
    [[nodiscard]] std::filesystem::path database() const { return folder_ / "tinkxx.sqlite"; }
    [[nodiscard]] std::filesystem::path backups() const { return folder_ / "backups"; }
    /// Where a checkpoint or ephemeral weights are, by what its row says.
    [[nodiscard]] std::filesystem::path place(std::string_view relative) const {
        return folder_ / relative;
    }

    // Names of the server's own temporary form, which have the id of the home in them: a folder of
    // such a name was written by this server, and is either finished or removed by the next one.

    /// Where a folder is written before it is known.
    [[nodiscard]] std::string saving(std::string_view relative) const;
    /// What a folder is called while it is being removed.
    [[nodiscard]] std::string removing(std::string_view relative) const;
    struct Temporary {
        enum class Kind : std::uint8_t { saving, removing } kind{Kind::saving};
        /// The folder that it was, or was to be, relative to the home.
        std::string relative{};
    };
    /// What a name of that form stands for; none for any other name. `parent` is `checkpoints` or
    /// `ephemeral`.
    [[nodiscard]] std::optional<Temporary> temporary(std::string_view parent,
                                                     std::string_view name) const;

private:
    Home(std::filesystem::path folder, std::string id, int lock, bool temporary)
        : folder_{std::move(folder)}, id_{std::move(id)}, lock_{lock}, temporary_{temporary} {}
    static Result<std::unique_ptr<Home>> take(std::filesystem::path folder, std::string const& id,
                                              bool restore);
    [[nodiscard]] std::string temporary_name(std::string_view relative,
                                             std::string_view kind) const;

    std::filesystem::path folder_;
    std::string id_;
    int lock_;
    bool temporary_;
};

}  // namespace tinkxx::local
