#pragma once

#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

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

    support::TemporaryFolder const temporary{};
    std::filesystem::path const root{temporary.path()};
};

}  // namespace tinkxx::files
