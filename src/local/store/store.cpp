#include "local/store/store.hpp"

#include <utility>

namespace tinkxx::local {

Store::Store(std::unique_ptr<Database> database, Worker& worker)
    : shared_{std::make_shared<Shared>(Shared{std::move(database)})}, worker_{worker} {}

Store::~Store() { *alive_ = false; }

void Store::write(std::vector<Change> changes, Written done) {
    if (changes.empty() && !done) return;
    waiting_.push_back({.changes = std::move(changes), .done = std::move(done)});
    if (!busy_) begin();
}

void Store::write(std::vector<Change> changes) { write(std::move(changes), Written{}); }

void Store::begin() {
    busy_ = true;
    auto items = std::make_shared<std::vector<Item>>(std::exchange(waiting_, {}));
    worker_.run(
        [shared = shared_, items] {
            std::vector<Change> all;
            for (auto& item : *items) {
                all.insert(all.end(), item.changes.begin(), item.changes.end());
            }
            if (items->size() > 1 && shared->database->commit(all)) return;
            for (auto& item : *items) item.outcome = shared->database->commit(item.changes);
        },
        [this, alive = alive_, items] {
            for (auto& item : *items) {
                if (!*alive) return;
                if (item.done) item.done(std::move(item.outcome));
            }
            if (!*alive) return;
            busy_ = false;
            if (!waiting_.empty()) begin();
        });
}

void Store::find(Table table, std::string key, Found done) {
    // What waits has to be there first.
    write({}, [this, table, key = std::move(key),
               done = std::move(done)](Result<void> const& /*written*/) mutable {
        auto found = std::make_shared<Result<std::optional<std::string>>>(std::nullopt);
        worker_.run([shared = shared_, table, key = std::move(key),
                     found] { *found = shared->database->find(table, key); },
                    [found, done = std::move(done)]() mutable { done(std::move(*found)); });
    });
}

void Store::flush() noexcept {
    std::vector<Change> all;
    for (auto& item : std::exchange(waiting_, {})) {
        all.insert(all.end(), std::make_move_iterator(item.changes.begin()),
                   std::make_move_iterator(item.changes.end()));
    }
    if (!all.empty()) (void)shared_->database->commit(all);
}

}  // namespace tinkxx::local
