#pragma once

#include <tinkxx/local/options.hpp>
#include <tinkxx/runtime.hpp>
#include <tinkxx/transport.hpp>

#include <chrono>
#include <filesystem>
#include <memory>

namespace tinkxx::local {

class Handler;

/// A Tinker server in this process: it trains LoRA adapters and samples on the CPU, and keeps
/// checkpoints and results in a folder.
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
/// A cheap handle: copies share one server, which ends with its last handle and transport.
/// Everything that was acknowledged by then is kept in its data directory. Every member may be
/// called from any thread.
class Server {
public:
    /// Opens the data directory and starts to load the models; requests wait for them. Uses a
    /// runtime of its own, or the given one, which may be without threads. Throws
    /// `ValidationError`, naming field and value, for a directory that is in use or cannot be
    /// written to, a folder that is not a model, and invalid options.
    explicit Server(ServerOptions options);
    Server(ServerOptions options, Runtime const& runtime);

    /// The transport by which clients of the same runtime reach it.
    [[nodiscard]] std::shared_ptr<Transport> transport() const;
    /// The base URL for clients that use `transport`.
    [[nodiscard]] static char const* base_url() noexcept { return "http://localhost"; }
    [[nodiscard]] Runtime const& runtime() const noexcept { return runtime_; }
    /// The data directory.
    [[nodiscard]] std::filesystem::path const& home() const noexcept;

    /// Accepts no new work, and waits for at most `limit` until running work is done and stored.
    /// Samples that are not done by then are computed by the next server on the same data
    /// directory. `ServerOptions::log` is not called after this returns. Must not be called on a
    /// thread of the runtime.
    void stop(std::chrono::nanoseconds limit = std::chrono::seconds{10}) const;

    /// For the library's own listener. Loop thread.
    [[nodiscard]] std::shared_ptr<Handler> handler() const;

private:
    struct Shared;
    Runtime runtime_;
    std::shared_ptr<Shared> shared_;
};

}  // namespace tinkxx::local
