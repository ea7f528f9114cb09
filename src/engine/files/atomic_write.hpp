#pragma once

#include <tinkxx/result.hpp>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

namespace tinkxx::engine {

/// Takes the next bytes of a file.
using ByteSink = std::function<void(std::span<std::byte const>)>;

/// Writes one file whole: under a temporary name beside it, flushed to the disk, then renamed. A
/// reader sees the old file or the new one. `produce` hands over the bytes, as many at a time as it
/// likes; what it gives after a write has failed is dropped.
/// Fails with the system's reason, or with that of `produce`; the temporary file is removed then.
Result<void> write_file(std::filesystem::path const& path,
                        std::function<Result<void>(ByteSink const&)> const& produce);
Result<void> write_file(std::filesystem::path const& path, std::string_view text);

/// Writes a folder whole: `fill` gets a temporary folder beside `folder`, which then takes its
/// place at once. An older folder of that name is removed afterwards. What `fill` writes must be
/// flushed by itself (`write_file` does). If `fill` fails, nothing has changed.
Result<void> replace_folder(std::filesystem::path const& folder,
                            std::function<Result<void>(std::filesystem::path const&)> const& fill);

}  // namespace tinkxx::engine
