#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::local {

/// A problem in a data directory: something that is not as a server left it.
struct HomeFinding {
    /// A file or folder relative to the home, or a row of its database.
    std::string what{};
    /// What is wrong, and what can be done about it.
    std::string problem{};
    /// What was done about it; empty if nothing.
    std::string done{};
};

/// The contents of a data directory.
struct HomeReport {
    std::filesystem::path home{};
    std::string id{};
    /// The schema version of its database. A server migrates an older one.
    std::int64_t schema{0};
    std::size_t sessions{0};
    std::size_t runs{0};
    std::size_t checkpoints{0};
    std::uint64_t checkpoint_bytes{0};
    std::vector<HomeFinding> findings{};

    /// Whether nothing is wrong, or every problem was repaired.
    [[nodiscard]] bool good() const noexcept;
};

struct HomeCheckOptions {
    /// Adopts checkpoints that the database does not know, quarantines rows that cannot be read,
    /// writes a missing marker and missing checksums, and rescues what can be read of a damaged
    /// database. Deletes nothing.
    bool repair{false};
    /// Also removes files that the database does not know and that cannot be adopted.
    bool remove{false};
    /// Called for each checkpoint before its files are read, which may take long. May be empty.
    std::function<void(std::string_view what, std::size_t done, std::size_t of)> progress{};
};

/// Checks the data directory of a server: rows, folders, and the checksums of all files. Without
/// `repair` and `remove` it changes nothing. No server may use the directory meanwhile. Blocks.
/// Throws `Error` if there is no such directory, or if it is in use or cannot be read.
[[nodiscard]] HomeReport check_home(std::filesystem::path const& folder,
                                    HomeCheckOptions const& options);

}  // namespace tinkxx::local
