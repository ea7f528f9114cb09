#pragma once

#include <tinkxx/local/options.hpp>
#include <tinkxx/scheduler.hpp>

#include "engine/engine.hpp"
#include "local/api/ask.hpp"
#include "local/api/bodies.hpp"
#include "local/api/pieces.hpp"
#include "local/results/results.hpp"
#include "local/services/change_queue.hpp"
#include "local/services/counters.hpp"
#include "local/store/home.hpp"
#include "local/store/store.hpp"
#include "local/store/worker.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::local {

/// What every part of the server may use. Loop thread.
struct Services {
    /// Makes the workers. The scheduler must outlive them.
    Services(ServerOptions chosen, Scheduler& loop, std::unique_ptr<Home> folder,
             std::unique_ptr<Database> database);
    ~Services();
    Services(Services const&) = delete;
    Services& operator=(Services const&) = delete;

    /// Ends what is under way, in an order in which nobody is told of anything any more, and writes
    /// what waits to be written.
    void close();

    void log(LogLevel level, std::string const& line) const;
    /// An id that nobody can guess.
    [[nodiscard]] std::string fresh_id();
    /// Refuses new work while the server is stopping.
    [[nodiscard]] MaybeRefused check_accepting(std::string_view operation) const;
    /// Writes `changes`, then calls `written`, which answers; if that fails, answers why.
    void commit(std::shared_ptr<Answer> const& answer, std::string_view operation,
                std::vector<Change> changes, tinkxx::detail::UniqueFunction<void()> written);

    ServerOptions options;
    Scheduler& scheduler;
    std::unique_ptr<Home> home;
    /// Of the store, of files and of results.
    std::unique_ptr<Worker> store_worker;
    std::unique_ptr<Worker> file_worker;
    std::unique_ptr<Worker> result_worker;
    std::unique_ptr<Store> store;
    Bodies bodies;
    ChangeQueue turns;
    /// Lists and reports that are being made.
    Pieces lists;
    Counters counters{};
    bool stopping{false};
    /// False once the server has ended.
    std::shared_ptr<bool> alive{std::make_shared<bool>(true)};
    // From the start of the server on.
    std::unique_ptr<Results> results{};
    std::unique_ptr<engine::Engine> engine{};
};

/// Random bits in the form of a random UUID.
[[nodiscard]] std::string uuid_of(std::uint64_t high, std::uint64_t low);

}  // namespace tinkxx::local
