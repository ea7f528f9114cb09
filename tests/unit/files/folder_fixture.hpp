#pragma once

#include <gtest/gtest.h>

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace tinkxx::files {

/// A folder that goes with the test.
class FolderTest : public ::testing::Test {
protected:
    FolderTest() {
        auto pattern = (std::filesystem::temp_directory_path() / "tinkxx-files-XXXXXX").string();
        root = ::mkdtemp(pattern.data());
    }
    ~FolderTest() override {
        std::error_code ignored;
        std::filesystem::remove_all(root, ignored);
    }
    static std::string content(std::filesystem::path const& path) {
        std::ifstream file{path, std::ios::binary};
        return {std::istreambuf_iterator<char>{file}, {}};
    }
    static void put(std::filesystem::path const& path, std::string const& text) {
        std::ofstream{path, std::ios::binary} << text;
    }
    /// Everything below the root, by its path there.
    [[nodiscard]] std::vector<std::string> listing() const {
        std::vector<std::string> names;
        for (auto const& entry : std::filesystem::recursive_directory_iterator{root}) {
            names.push_back(std::filesystem::relative(entry.path(), root).string());
        }
        std::ranges::sort(names);
        return names;
    }

    std::filesystem::path root;
};

}  // namespace tinkxx::files
