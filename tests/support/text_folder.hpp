#pragma once

#include "support/temporary_folder.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace tinkxx::test {

/// A folder that goes with its owner, of files that a test writes.
class TextFolder {
public:
    [[nodiscard]] std::filesystem::path const& path() const noexcept { return folder_.path(); }

    /// Writes a file, with the folders that it is in.
    std::filesystem::path write(std::filesystem::path const& name, std::string_view text) const {
        auto const file = path() / name;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream{file, std::ios::binary} << text;
        return file;
    }

    [[nodiscard]] std::string read(std::filesystem::path const& name) const {
        std::ifstream file{path() / name, std::ios::binary};
        return {std::istreambuf_iterator<char>{file}, {}};
    }

private:
    support::TemporaryFolder folder_{};
};

}  // namespace tinkxx::test
