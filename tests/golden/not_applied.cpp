#include "not_applied.hpp"

#include <fnmatch.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tinkxx::golden {
namespace {

std::string trimmed(std::string const& text) {
    auto const first = text.find_first_not_of(' ');
    if (first == std::string::npos) return {};
    return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::vector<NotApplied> read_list() {
    std::string const path{TINKXX_SOURCE_DIR "/tests/golden/wire-not-applied.txt"};
    std::ifstream file{path};
    if (!file) throw std::runtime_error{"cannot read " + path};
    std::vector<NotApplied> list;
    for (std::string line; std::getline(file, line);) {
        if (trimmed(line).empty() || line.starts_with('#')) continue;
        std::vector<std::string> parts;
        std::istringstream in{line};
        for (std::string part; std::getline(in, part, '|');) parts.push_back(trimmed(part));
        if (parts.size() != 4 || parts[3].empty() || (parts[0] != "waits" && parts[0] != "never")) {
            throw std::runtime_error{path + ": cannot read the line \"" + line + '"'};
        }
        list.push_back({.waits = parts[0] == "waits",
                        .kind = parts[1],
                        .pattern = parts[2],
                        .reason = parts[3]});
    }
    return list;
}

}  // namespace

std::optional<NotApplied> not_applied(std::string const& kind, std::string const& subject) {
    static auto const list = read_list();
    for (auto const& entry : list) {
        if (entry.kind == kind && ::fnmatch(entry.pattern.c_str(), subject.c_str(), 0) == 0) {
            return entry;
        }
    }
    return std::nullopt;
}

}  // namespace tinkxx::golden
