#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::local {

/// Something in a home that is not as a server left it.
struct HomeFinding {
    /// A file or folder relative to the home, or a row of its database.
    std::string what{};
    /// What is wrong with it, and what can be done about it.
    std::string problem{};
    /// What was done about it; empty if nothing was.
    std::string done{};
};

/// What a home holds.
struct HomeReport {
    std::filesystem::path home{};
    std::string id{};
    /// Of its database; a server brings an older one up to date.
    std::int64_t schema{0};
    std::size_t sessions{0};
    std::size_t runs{0};
    std::size_t checkpoints{0};
    std::uint64_t checkpoint_bytes{0};
    std::vector<HomeFinding> findings{};

    /// Whether nothing is wrong, or everything that was is repaired.
    [[nodiscard]] bool good() const noexcept;
};

struct HomeCheckOptions {
    /// Adopts checkpoints that no row names, puts rows aside that cannot be read, writes a missing
    /// marker and missing checksums, and saves what can be read of a damaged database. Deletes
    /// nothing.
    bool repair{false};
    /// Also removes what no row names and what cannot be adopted.
    bool remove{false};
    /// Told of each checkpoint before its files are read, which may take long. May be empty.
    std::function<void(std::string_view what, std::size_t done, std::size_t of)> progress{};
};

/// Looks whether the home of a server is whole: rows, folders, and the checksums of all files.
/// Without `repair` and `remove` it changes nothing. No server may use the home meanwhile.
/// Blocks. Throws `Error` if there is no home, or it is in use or cannot be read.
[[nodiscard]] HomeReport check_home(std::filesystem::path const& folder,
                                    HomeCheckOptions const& options);

}  // namespace tinkxx::local
