#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::load {

/// What became of requests: a status, "closed" (the server ended the connection), "silent" (no
/// complete answer in time), "left" (not waited for) or "open" (a connection that did nothing).
using Outcomes = std::map<std::string, std::uint64_t>;

/// Where an attack goes, for how long, and how hard.
struct Target {
    std::uint16_t port{0};
    /// Header lines with a good key.
    std::string key{};
    /// Of the largest bodies and counts, in percent.
    unsigned size{100};
    std::uint64_t seed{0};
    std::chrono::steady_clock::time_point end{};

    [[nodiscard]] std::size_t scaled(std::size_t full) const {
        return std::max<std::size_t>(1, full * size / 100);
    }
};

/// One kind of hostile client. It ends soon after `Target::end`: within one request.
struct Attack {
    std::string_view name{};
    void (*run)(Target const& target, Outcomes& outcomes){nullptr};
    /// Whether it waits for complete answers, so that a silent server is at fault.
    bool waits{true};
};

[[nodiscard]] std::vector<Attack> const& attacks();

/// Starts more work than fits into ten seconds, and leaves it.
void leave_work(Target const& target);

}  // namespace tinkxx::load
