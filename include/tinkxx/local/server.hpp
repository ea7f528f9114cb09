#pragma once

#include <tinkxx/local/options.hpp>
#include <tinkxx/runtime.hpp>
#include <tinkxx/transport.hpp>

#include <chrono>
#include <filesystem>
#include <memory>

namespace tinkxx::local {

class Handler;

/// A Tinker server in this process: it trains LoRA adapters and draws samples on the CPU, and
/// keeps checkpoints and results in a folder.
///
///     tinkxx::local::Server server{{.models = {{.folder = "models/tiny", .byte_level = true}},
///                                   .home = "runs"}};
///     tinkxx::ServiceClient service{{.base_url = server.base_url(),
///                                    .api_key = "tml-local",
///                                    .transport = server.transport(),
///                                    .runtime = server.runtime()}};
///
/// <tinkxx/local/service_client.hpp> does that in one line.
///
/// A cheap handle: copies share one server, which ends with its last handle and transport. What was
/// acknowledged by then is kept in its home. Every member may be called from any thread.
class Server {
public:
    /// Opens the home and begins to load the models; requests wait for those. On a runtime of its
    /// own, or on that of the caller, which may be without threads. Throws `ValidationError`,
    /// naming field and value, for a home that is in use or cannot be written to, a folder that is
    /// no model, and options that cannot work.
    explicit Server(ServerOptions options);
    Server(ServerOptions options, Runtime const& runtime);

    /// The way to it for clients of the same runtime.
    [[nodiscard]] std::shared_ptr<Transport> transport() const;
    /// What clients are to call it.
    [[nodiscard]] static char const* base_url() noexcept { return "http://localhost"; }
    [[nodiscard]] Runtime const& runtime() const noexcept { return runtime_; }
    /// The folder in which it keeps everything.
    [[nodiscard]] std::filesystem::path const& home() const noexcept;

    /// Takes no new work, and waits until what runs is done and written down, at most for `limit`.
    /// Samples that are not done by then are computed when a server is started on the same home.
    /// `ServerOptions::log` is not called after it has returned. Not on a thread of the runtime.
    void stop(std::chrono::nanoseconds limit = std::chrono::seconds{10}) const;

    /// For the library's own listener. Loop thread.
    [[nodiscard]] std::shared_ptr<Handler> handler() const;

private:
    struct Shared;
    Runtime runtime_;
    std::shared_ptr<Shared> shared_;
};

}  // namespace tinkxx::local
