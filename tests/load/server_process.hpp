#pragma once

#include "support/sockets/processes.hpp"

#include <tinkxx/http_client.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tinkxx::load {

/// Memory of a process in bytes: now (`VmRSS`) or at most (`VmHWM`). 0 if there is none such.
[[nodiscard]] std::uint64_t memory_of(pid_t process, char const* which);

/// `tinkxx serve` with a home of its own, until it goes away.
class ServerProcess {
public:
    /// Waits until it serves. Throws if it does not.
    ServerProcess(std::string const& program, std::vector<std::string> const& arguments);

    [[nodiscard]] std::string const& url() const noexcept { return url_; }
    [[nodiscard]] pid_t id() const noexcept { return process_->id(); }
    /// All numbers of `/metrics`, by name with labels.
    [[nodiscard]] std::map<std::string, std::uint64_t> metrics() const;
    /// What it wrote.
    [[nodiscard]] std::string said() const { return test::read_file(log_); }
    /// Whether it has ended by itself.
    [[nodiscard]] bool ended() const;
    /// SIGTERM. Its exit code; -1 if it had to be killed.
    [[nodiscard]] int end();

private:
    test::TemporaryFolder folder_{};
    std::string log_{folder_ / "log"};
    std::unique_ptr<test::Process> process_{};
    std::string url_{};
};

}  // namespace tinkxx::load
