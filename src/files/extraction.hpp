#pragma once

#include <tinkxx/result.hpp>

#include "files/tar_reader.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::files {

/// Takes a tar file, plain or in gzip, apart into a folder, a bit at a time and in constant memory
/// (R-CLI-11). A folder that was not there and could not be filled is removed again.
class Extraction {
public:
    /// A file that was written, and its size.
    using Written = std::pair<std::string, std::int64_t>;

    /// `target` must not be there yet.
    [[nodiscard]] static Result<std::unique_ptr<Extraction>> begin(
        std::filesystem::path const& archive, std::filesystem::path const& target,
        TarLimits limits);
    virtual ~Extraction() = default;
    Extraction(Extraction const&) = delete;
    Extraction& operator=(Extraction const&) = delete;

    /// Reads on for about a mebibyte; true once everything is written.
    [[nodiscard]] virtual Result<bool> step() = 0;
    [[nodiscard]] virtual std::vector<Written> const& written() const noexcept = 0;

protected:
    Extraction() = default;
};

}  // namespace tinkxx::files
