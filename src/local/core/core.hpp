#pragma once

#include <tinkxx/local/options.hpp>
#include <tinkxx/result.hpp>
#include <tinkxx/scheduler.hpp>

#include "local/api/access.hpp"
#include "local/api/handler.hpp"
#include "local/core/chaos.hpp"
#include "local/core/parts.hpp"
#include "local/services/services.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tinkxx::local {

struct Route;

/// A Tinker server without a socket: finds the endpoint of a request in the table of `routes.hpp`.
/// State and endpoints are those of its parts.
///
/// `create` may be called on any thread; everything else, the destructor included, on the loop.
class Core final : public Handler {
public:
    /// Opens the home, reads what is kept there and the configurations of the models. Fails with a
    /// message for the operator. The scheduler must outlive the core.
    [[nodiscard]] static Result<std::unique_ptr<Core>> create(ServerOptions options,
                                                              Scheduler& scheduler);
    ~Core() override;
    Core(Core const&) = delete;
    Core& operator=(Core const&) = delete;

    /// Begins to load models and to compute what was accepted before.
    void start();
    void handle(ServerRequest request, std::shared_ptr<Answer> answer) override;
    /// Takes no new work (503), and calls `done` once what runs is done and written down, or
    /// `limit` is over. Samples that are not done by then are computed by the next server.
    void stop(std::chrono::nanoseconds limit, Task done);

    [[nodiscard]] ServerOptions const& options() const noexcept { return services_.options; }
    [[nodiscard]] std::filesystem::path const& home() const noexcept {
        return services_.home->folder();
    }

private:
    class Sweep;
    class Stopping;
    class Later;
    class Watched;
    struct Look;
    struct Opened;

    Core(ServerOptions options, Scheduler& scheduler, Opened opened);

    /// Calls the endpoint of a request, unless chaos has something else in mind.
    void serve_with_faults(Ask ask, Route const& route, std::shared_ptr<Watched> watched);
    void serve(Ask& ask, Route const& route);
    void start_results();
    /// Looks for what has become old, piece by piece.
    void sweep();
    void finish_sweep(Look& look);
    [[nodiscard]] QueueNote why_waiting(std::string const& id) const;

    Services services_;
    Parts parts_;
    AccessRules access_;
    Chaos chaos_;
    Pieces sweeping_;
    /// Of results that were accepted before a restart.
    std::vector<RequestRow> requests_{};
    /// Folders to be removed once there is a loop.
    std::vector<std::string> abandoned_{};
    std::vector<std::string> over_{};
    std::unique_ptr<Sweep> sweep_{};
    std::unique_ptr<Stopping> stopping_timer_{};
    std::set<std::shared_ptr<Later>> later_{};
};

}  // namespace tinkxx::local
