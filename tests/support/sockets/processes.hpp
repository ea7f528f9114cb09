#pragma once

#include "support/sockets/certificates.hpp"
#include "support/temporary_folder.hpp"

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx::test {

using support::TemporaryFolder;

void write_file(std::string const& path, std::string const& content);
[[nodiscard]] std::string read_file(std::string const& path);

/// Where a program lies, looking in PATH and the usual system folders; empty if nowhere.
[[nodiscard]] std::string find_program(std::string const& name);

/// A program that runs until it is killed.
class Process {
public:
    /// Starts `command[0]` with standard output and error appended to `log_file`. Throws.
    Process(std::vector<std::string> command, std::string const& log_file);
    /// Kills it if it still runs.
    ~Process();
    Process(Process const&) = delete;
    Process& operator=(Process const&) = delete;

    [[nodiscard]] pid_t id() const noexcept { return id_; }
    /// SIGKILL, to its children too, and waits for its end.
    void kill() noexcept;

private:
    pid_t id_{-1};
};

/// A web server that nobody here wrote, in its own process, on a free port of 127.0.0.1.
class ForeignServer {
public:
    virtual ~ForeignServer() = default;
    /// Kills it as the kernel would: without a word.
    virtual void kill() = 0;
    /// Starts it (again), on the same port, and waits until it answers the phone.
    virtual void start() = 0;
    /// Where to send requests, e.g. "https://127.0.0.1:1234". Every path echoes what is posted.
    [[nodiscard]] virtual std::string url() const = 0;
    /// Values of `x-request-id` that it logged, with repetitions.
    [[nodiscard]] virtual std::vector<std::string> seen_ids() const = 0;
};

struct ForeignServerOptions {
    /// Empty: no TLS.
    CertificateFiles certificate{};
    /// Put before the command, e.g. {"taskset", "-c", "0"}.
    std::vector<std::string> prefix{};
    /// Whether to log ids (costs time).
    bool log_ids{true};
    /// Answer this many bytes in place of the request's body. 0: echo.
    std::size_t answer_bytes{0};
    /// HTTP/2 streams per connection.
    int max_streams{128};
};

/// Why there can be no such server here, for `GTEST_SKIP`; empty if there can.
[[nodiscard]] std::string nginx_missing();
[[nodiscard]] std::string nghttpd_missing();

/// HTTP/1.1, and HTTP/2 with TLS. Needs Debian's `libnginx-mod-http-echo`.
[[nodiscard]] std::unique_ptr<ForeignServer> make_nginx(ForeignServerOptions options);
/// HTTP/2 only: with TLS, or in the clear with prior knowledge.
[[nodiscard]] std::unique_ptr<ForeignServer> make_nghttpd(ForeignServerOptions options);

}  // namespace tinkxx::test
