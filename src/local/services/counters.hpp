#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace tinkxx::local {

/// Numbers that only grow, in the text format of Prometheus.
class Counters {
public:
    /// `labels`: such as `route="asample",status="200"`; may be empty.
    void add(std::string_view name, std::string_view labels, std::uint64_t by = 1) {
        values_[{std::string{name}, std::string{labels}}] += by;
    }
    [[nodiscard]] std::string text() const {
        std::string out;
        std::string_view last;
        for (auto const& [key, value] : values_) {
            auto const& [name, labels] = key;
            if (name != last) out += "# TYPE " + name + " counter\n";
            last = name;
            out += name;
            if (!labels.empty()) out += "{" + labels + "}";
            out += " " + std::to_string(value) + "\n";
        }
        return out;
    }

private:
    std::map<std::pair<std::string, std::string>, std::uint64_t> values_{};
};

}  // namespace tinkxx::local
