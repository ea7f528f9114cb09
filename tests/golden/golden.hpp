#pragma once

#include <boost/json.hpp>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace tinkxx::golden {

inline std::string folder() {
    auto const* elsewhere = std::getenv("TINKXX_GOLDEN_WIRE");
    return elsewhere != nullptr ? elsewhere : TINKXX_SOURCE_DIR "/tests/golden/wire";
}

/// A file of the recorded wire data.
inline boost::json::value load(std::string const& name) {
    std::ifstream file{folder() + '/' + name};
    if (!file) throw std::runtime_error{"cannot read " + folder() + '/' + name};
    std::ostringstream text;
    text << file.rdbuf();
    return boost::json::parse(text.str());
}

/// The names of the recordings in a folder whose own name begins with three digits and a dash, and
/// then matches: `list("responses", std::regex{"sample-.*"})`.
inline std::vector<std::string> list(std::string const& name, std::regex const& pattern) {
    std::vector<std::string> out;
    for (auto const& entry : std::filesystem::directory_iterator{folder() + '/' + name}) {
        auto const file = entry.path().stem().string();
        if (file.size() > 4 && std::regex_match(file.substr(4), pattern)) {
            out.push_back(name + '/' + file + ".json");
        }
    }
    std::ranges::sort(out);
    return out;
}

/// For the names of parameterised tests: `027_asample_defaults`.
inline std::string test_name(std::string const& file) {
    auto name = std::filesystem::path{file}.stem().string();
    std::ranges::replace_if(
        name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
    return name;
}

/// The vectors of a section of delays.json that describe the newest recorded version.
inline boost::json::array newest_vectors(std::string const& section) {
    auto const all = load("delays.json");
    for (auto const& entry : all.at(section).as_array()) {
        for (auto const& version : entry.at("versions").as_array()) {
            if (version == "0.36.0") return entry.at("vectors").as_array();
        }
    }
    throw std::runtime_error{"no vectors of 0.36.0 in section " + section};
}

}  // namespace tinkxx::golden
