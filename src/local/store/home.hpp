#pragma once

#include <tinkxx/result.hpp>

#include <filesystem>
#include <memory>

namespace tinkxx::local {

/// The folder in which a server keeps everything, locked against a second server.
///
///     tinkxx.sqlite    sessions, runs, checkpoints, requests and results
///     checkpoints/     one folder for each checkpoint, which appears whole or not at all
///     ephemeral/       weights that were saved under no name, until their session ends
class Home {
public:
    /// Makes the folder if need be and locks it. An empty path is a temporary folder, which is
    /// removed in the end. Fails if another server holds it or it cannot be written to.
    [[nodiscard]] static Result<std::unique_ptr<Home>> open(std::filesystem::path folder);
    ~Home();
    Home(Home const&) = delete;
    Home& operator=(Home const&) = delete;

    [[nodiscard]] std::filesystem::path const& folder() const noexcept { return folder_; }
    [[nodiscard]] std::filesystem::path database() const { return folder_ / "tinkxx.sqlite"; }
    /// Where a checkpoint or ephemeral weights are, by what its row says.
    [[nodiscard]] std::filesystem::path place(std::string_view relative) const {
        return folder_ / relative;
    }

private:
    Home(std::filesystem::path folder, int lock, bool temporary)
        : folder_{std::move(folder)}, lock_{lock}, temporary_{temporary} {}

    std::filesystem::path folder_;
    int lock_;
    bool temporary_;
};

}  // namespace tinkxx::local
