#pragma once

#include "wire/json/json.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace tinkxx::golden {

/// What the official SDK, as it is now, was seen to do; older releases are recorded too.
inline constexpr auto newest = "0.36.0";

/// The recordings of the tree.
inline std::string own_folder() { return TINKXX_SOURCE_DIR "/tests/golden/wire"; }

/// The recordings: the project's own, or those of the folder that `TINKXX_GOLDEN_WIRE` names.
inline std::string folder() {
    auto const* elsewhere = std::getenv("TINKXX_GOLDEN_WIRE");
    if (elsewhere == nullptr || *elsewhere == '\0') return own_folder();
    std::filesystem::path const given{elsewhere};
    // CTest changes into the build folder; a relative path is meant from where it was called.
    auto const* called_from = std::getenv("PWD");
    if (given.is_relative() && called_from != nullptr &&
        std::filesystem::exists(called_from / given)) {
        return (called_from / given).string();
    }
    return elsewhere;
}

/// A file of the recorded wire data.
inline boost::json::value load(std::string const& name) {
    std::ifstream file{folder() + '/' + name};
    if (!file) throw std::runtime_error{"cannot read " + folder() + '/' + name};
    std::ostringstream text;
    text << file.rdbuf();
    return wire::parse_json(name, text.str()).value();  // doubles to the last digit
}

/// Every file of the folder, by its path in there.
inline std::vector<std::string> files() {
    std::vector<std::string> out;
    std::filesystem::path const root{folder()};
    if (!std::filesystem::is_directory(root)) return out;
    for (auto const& entry : std::filesystem::recursive_directory_iterator{root}) {
        if (!entry.is_regular_file()) continue;
        out.push_back(std::filesystem::relative(entry.path(), root).generic_string());
    }
    std::ranges::sort(out);
    return out;
}

/// Whether the folder has that file; another folder need not have all.
inline bool has(std::string const& name) { return std::filesystem::exists(folder() + '/' + name); }

/// The recordings below `requests/` or `responses/`.
inline std::vector<std::string> recordings(std::string const& kind) {
    auto all = files();
    std::erase_if(all, [&](std::string const& file) {
        return !file.starts_with(kind + '/') || !file.ends_with(".json");
    });
    return all;
}

/// For the names of parameterised tests: `0_36_0_027_asample_defaults`.
inline std::string test_name(std::string const& file) {
    auto name = file.substr(file.find('/') + 1);
    if (name.ends_with(".json")) name.resize(name.size() - 5);
    std::ranges::replace_if(
        name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
    return name;
}

/// The sections of delays.json; none if there is no such file.
inline std::vector<std::string> sections() {
    std::vector<std::string> out;
    if (!has("delays.json")) return out;
    auto const all = load("delays.json");
    for (auto const& section : all.as_object()) out.emplace_back(section.key());
    std::ranges::sort(out);
    return out;
}

/// The vectors of a section of delays.json that describe the newest recorded version.
inline boost::json::array newest_vectors(std::string const& section) {
    auto const all = load("delays.json");
    for (auto const& entry : all.at(section).as_array()) {
        for (auto const& version : entry.at("versions").as_array()) {
            if (version == newest) return entry.at("vectors").as_array();
        }
    }
    throw std::runtime_error{"delays.json: no vectors of " + std::string{newest} + " in " +
                             section};
}

}  // namespace tinkxx::golden
