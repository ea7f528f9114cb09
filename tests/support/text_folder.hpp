#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace tinkxx::test {

/// A folder that is gone with everything in it at the end.
class TextFolder {
public:
    TextFolder() {
        auto pattern = (std::filesystem::temp_directory_path() / "tinkxx-text-XXXXXX").string();
        path_ = ::mkdtemp(pattern.data());
    }
    ~TextFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TextFolder(TextFolder const&) = delete;
    TextFolder& operator=(TextFolder const&) = delete;

    [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }

    /// Writes a file, with the folders that it is in.
    std::filesystem::path write(std::filesystem::path const& name, std::string_view text) const {
        auto const file = path_ / name;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream{file, std::ios::binary} << text;
        return file;
    }

    [[nodiscard]] std::string read(std::filesystem::path const& name) const {
        std::ifstream file{path_ / name, std::ios::binary};
        return {std::istreambuf_iterator<char>{file}, {}};
    }

private:
    std::filesystem::path path_;
};

}  // namespace tinkxx::test
