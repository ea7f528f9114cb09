#pragma once

#include <boost/json.hpp>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace tinkxx::golden {

/// A file of the recorded wire data.
inline boost::json::value load(std::string const& name) {
    auto const* elsewhere = std::getenv("TINKXX_GOLDEN_WIRE");
    auto const folder =
        elsewhere != nullptr ? std::string{elsewhere} : TINKXX_SOURCE_DIR "/tests/golden/wire";
    std::ifstream file{folder + '/' + name};
    if (!file) throw std::runtime_error{"cannot read " + folder + '/' + name};
    std::ostringstream text;
    text << file.rdbuf();
    return boost::json::parse(text.str());
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
