#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace tinkxx::load {

/// What the command line asks for.
struct Options {
    std::string server{};  ///< the program `tinkxx`
    std::chrono::seconds length{600};
    int users{500};
    int samples{20};  ///< of each user at once
    std::uint64_t seed{7};
    std::string chaos{"429:0.05,500:0.01,delay:50ms..2s,drop:0.01"};
    /// From the end of the load to the end of the last call.
    std::chrono::seconds patience{180};
    bool fairness{false};
    bool hostile{false};
    /// Of hostile clients: what healthz may take in milliseconds, the server's memory in MiB, and
    /// the largest bodies in percent.
    std::uint64_t probe_limit{100};
    std::uint64_t memory_limit{3072};
    unsigned size{100};
    std::string only{};  ///< of the names of their kinds
    bool json{false};
};

/// Exit codes, which scripts may rely on.
enum class ExitCode : int {
    success = 0,
    broken = 1,  ///< a promise was broken, or a target missed
    usage = 2,
    failure = 3,  ///< it could not be measured at all
};

/// None if help was asked for, or the command line is wrong: then the exit code is told.
[[nodiscard]] std::optional<Options> parse(int argc, char** argv, ExitCode& code);

}  // namespace tinkxx::load
