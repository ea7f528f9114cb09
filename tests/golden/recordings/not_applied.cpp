#include "golden/recordings/not_applied.hpp"

#include "golden/recordings/forms.hpp"

#include <fnmatch.h>

#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace tinkxx::golden {
namespace {

std::string trimmed(std::string const& text) {
    auto const first = text.find_first_not_of(' ');
    if (first == std::string::npos) return {};
    return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::vector<NotApplied> read_list() {
    std::map<std::string, Verdict> const verdicts{{"waits", Verdict::waits},
                                                  {"never", Verdict::never},
                                                  {"differs", Verdict::differs},
                                                  {"older", Verdict::older}};
    std::string const path{TINKXX_SOURCE_DIR "/tests/golden/wire-not-applied.txt"};
    std::ifstream file{path};
    if (!file) throw std::runtime_error{"cannot read " + path};
    std::vector<NotApplied> list;
    for (std::string line; std::getline(file, line);) {
        if (trimmed(line).empty() || line.starts_with('#')) continue;
        std::vector<std::string> parts;
        std::istringstream in{line};
        for (std::string part; std::getline(in, part, '|');) parts.push_back(trimmed(part));
        if (parts.size() != 4 || parts[3].empty() || !verdicts.contains(parts[0])) {
            throw std::runtime_error{path + ": cannot read the line \"" + line + '"'};
        }
        list.push_back({.verdict = verdicts.at(parts[0]),
                        .kind = parts[1],
                        .pattern = parts[2],
                        .reason = parts[3]});
    }
    return list;
}

std::vector<NotApplied> const& list() {
    static auto const read = read_list();
    return read;
}

}  // namespace

std::optional<NotApplied> not_applied(std::string const& kind, std::string const& subject) {
    for (auto const& entry : list()) {
        if (entry.kind == kind && ::fnmatch(entry.pattern.c_str(), subject.c_str(), 0) == 0) {
            return entry;
        }
    }
    return std::nullopt;
}

std::optional<NotApplied> not_applied_by_form(value const& recording) {
    for (auto const& entry : list()) {
        if (entry.kind == "form" && has_form(entry.pattern, recording)) return entry;
    }
    return std::nullopt;
}

}  // namespace tinkxx::golden
