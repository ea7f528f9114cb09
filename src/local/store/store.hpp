#pragma once

#include <tinkxx/detail/unique_function.hpp>

#include "local/store/database.hpp"
#include "local/store/worker.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx::local {

/// Brings rows to the database, off the loop: what is asked for while one commit is under way goes
/// into the next one, all of it at once. Loop thread.
class Store {
public:
    using Written = tinkxx::detail::UniqueFunction<void(Result<void>)>;
    using Found = tinkxx::detail::UniqueFunction<void(Result<std::optional<std::string>>)>;

    /// The worker must outlive the store.
    Store(std::unique_ptr<Database> database, Worker& worker);
    ~Store();
    Store(Store const&) = delete;
    Store& operator=(Store const&) = delete;

    /// Commits the changes, all or none, after those asked for before, and says when they are safe.
    /// Where a commit of several fails, each is tried alone: a full disk is the trouble of what
    /// does not fit.
    void write(std::vector<Change> changes, Written done);
    /// As above; nobody waits for it.
    void write(std::vector<Change> changes);
    /// Reads a row after what was written before.
    void find(Table table, std::string key, Found done);
    /// Waits for nothing and holds up the loop: for the start.
    [[nodiscard]] Database& database() noexcept { return *shared_->database; }
    /// Commits at once what is still waiting. For the end, when no worker serves any more.
    void flush() noexcept;

private:
    struct Item {
        std::vector<Change> changes{};
        Written done{};
        Result<void> outcome{};
    };
    struct Shared {
        std::unique_ptr<Database> database{};
    };
    void begin();

    std::shared_ptr<Shared> shared_;
    Worker& worker_;
    std::vector<Item> waiting_{};
    bool busy_{false};
    std::shared_ptr<bool> alive_{std::make_shared<bool>(true)};
};

}  // namespace tinkxx::local
