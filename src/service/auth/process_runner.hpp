#pragma once

#include "base/runtime/runtime_core.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace tinkxx::service {

/// How a command ended.
struct ProcessOutcome {
    enum class End : std::uint8_t {
        exited,       ///< with `code`
        signalled,    ///< by the signal `code`
        not_started,  ///< `why` says so
        too_talkative,
    };
    End end{End::exited};
    int code{0};
    std::string why{};
    /// What it wrote to its standard output. Often a secret.
    std::string output{};
};

class ProcessListener {
public:
    virtual void on_process_end(ProcessOutcome outcome) = 0;

protected:
    ~ProcessListener() = default;
};

/// Runs commands without holding up the loop. Loop thread only.
class ProcessRunner {
public:
    virtual ~ProcessRunner() = default;
    /// Starts a command and gives its number, which is not 0. The listener is told from the loop.
    virtual std::uint64_t start(std::string const& command, ProcessListener& listener) = 0;
    /// Ends a command with all that it started; its listener is not told any more. Harmless if it
    /// has ended.
    virtual void kill(std::uint64_t run) noexcept = 0;
};

/// Runs `/bin/sh -c command` with nothing to read, its errors on ours, in a process group of its
/// own. Made on any thread.
[[nodiscard]] std::shared_ptr<ProcessRunner> shell_runner(
    std::shared_ptr<detail::RuntimeCore> runtime);

}  // namespace tinkxx::service
