#pragma once

#include "output/terminal.hpp"

#include <tinkxx/options.hpp>
#include <tinkxx/types/timestamp.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace tinkxx::cli {

/// Options that many commands share, given before or after the name of the command.
struct Globals {
    bool json{false};
    /// `table` or `json`.
    std::string format{"table"};
    std::string api_key{};
    std::string base_url{};
    /// For each call, in seconds; 0: no limit.
    double timeout{60};

    [[nodiscard]] bool as_json() const noexcept { return json || format == "json"; }
};

/// The value of an environment variable; empty if it is not set, or set to nothing.
using Environment = std::function<std::optional<std::string>(char const* name)>;
/// That of the process.
[[nodiscard]] std::optional<std::string> process_environment(char const* name);

/// What a command gets from outside. Nothing else is read or written, so that commands can be
/// tested without a process.
struct Context {
    Terminal& terminal;
    /// Where it reads from if no file is named.
    int in{0};
    Environment environment{process_environment};
    std::function<Timestamp::Time()> now{[] {
        return std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
    }};
    /// What clients are made of, apart from what the command line says.
    ClientOptions client{};
    Globals globals{};

    [[nodiscard]] std::ostream& out() const noexcept { return terminal.out(); }
    [[nodiscard]] std::ostream& err() const noexcept { return terminal.err(); }
    [[nodiscard]] bool json() const noexcept { return globals.as_json(); }
    /// `client`, with the options of the command line. Throws `BadUsage`.
    [[nodiscard]] ClientOptions client_options() const;
};

}  // namespace tinkxx::cli
