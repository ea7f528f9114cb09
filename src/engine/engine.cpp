#include "engine/engine.hpp"

#include "base/common/give_way.hpp"
#include "engine/engine_core.hpp"
#include "engine/kernels/isa/isa.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace tinkxx::engine {

namespace {

std::chrono::nanoseconds steady_time() {
    return std::chrono::steady_clock::now().time_since_epoch();
}

}  // namespace

/// Brings jobs to the core and its answers back. Jobs and cancellations lie in the inbox until the
/// core asks for them; the core itself is used by one thread only, the worker or the loop.
class Engine::Impl : public Timer {
public:
    Impl(Scheduler& scheduler, EngineOptions const& options)
        : scheduler_{scheduler},
          by_loop_{options.drive == Drive::loop},
          token_time_{options.token_time},
          core_{core_options(options)} {
        if (by_loop_) return;
        worker_ = std::thread{[this, niceness = options.niceness] {
            base::give_way(niceness);
            work();
        }};
    }

    ~Impl() override {
        alive_->store(false);
        if (!worker_.joinable()) return;
        {
            std::lock_guard const lock{mutex_};
            stop_ = true;
        }
        woken_.notify_one();
        worker_.join();
    }

    JobId enqueue(JobPtr entry) {
        JobId id = 0;
        {
            std::lock_guard const lock{mutex_};
            id = entry->id = ++last_id_;
            if (open_.size() >= tidy_at_) {
                std::erase_if(open_, [](auto const& other) { return other.second.expired(); });
                tidy_at_ = std::max<std::size_t>(64, 2 * open_.size());
            }
            open_[id] = entry;
            inbox_.emplace_back(std::move(entry));
        }
        wake();
        return id;
    }

    void cancel(JobId id) {
        {
            std::lock_guard const lock{mutex_};
            auto const found = open_.find(id);
            if (found == open_.end()) return;
            if (auto const entry = found->second.lock()) entry->cancelled = true;
            open_.erase(found);
            inbox_.emplace_back(id);
        }
        wake();
    }

    void on_time() override {
        // What the slice before has computed is known now that its time is over.
        auto const alive = alive_;
        for (auto& task : std::exchange(held_, {})) {
            task();
            if (!alive->load()) return;  // and with it this object
        }
        auto const before = core_.tokens();
        if (!core_.step() && held_.empty()) return;
        auto const tokens = static_cast<std::int64_t>(core_.tokens() - before);
        scheduler_.arm(*this, scheduler_.now() + token_time_ * tokens, Precision::exact);
    }

private:
    CoreOptions core_options(EngineOptions const& options) {
        CoreOptions core{
            .threads = by_loop_ ? 1U : options.threads,
            .niceness = options.niceness,
            .sampler = {.cache_bytes = options.cache_bytes,
                        .prefill_tokens = options.prefill_tokens},
            .train = {.piece_tokens = options.piece_tokens,
                      .activation_bytes = options.activation_bytes},
            .clock = steady_time,
            .intake = [this] { take_in(); },
        };
        if (by_loop_) {
            core.clock = [this] { return token_time_ * static_cast<std::int64_t>(core_.tokens()); };
            core.deliver = [this](Task task) { held_.push_back(std::move(task)); };
        } else {
            core.deliver = [this](Task task) {
                scheduler_.post([alive = alive_, task = std::move(task)]() mutable {
                    if (alive->load()) task();
                });
            };
        }
        return core;
    }

    void take_in() {
        std::vector<std::variant<JobPtr, JobId>> items;
        {
            std::lock_guard const lock{mutex_};
            items.swap(inbox_);
        }
        for (auto& item : items) {
            if (auto* const entry = std::get_if<JobPtr>(&item)) {
                if (!(*entry)->cancelled) core_.accept(std::move(*entry));
            } else {
                core_.cancel(std::get<JobId>(item));
            }
        }
    }

    void wake() {
        if (!by_loop_) return woken_.notify_one();
        if (scheduler_.on_loop()) {
            if (!armed()) scheduler_.arm(*this, scheduler_.now(), Precision::exact);
            return;
        }
        scheduler_.post([this, alive = alive_] {
            if (alive->load() && !armed()) {
                scheduler_.arm(*this, scheduler_.now(), Precision::exact);
            }
        });
    }

    void work() {
        for (;;) {
            bool const worked = core_.step();
            std::unique_lock lock{mutex_};
            if (!worked) woken_.wait(lock, [this] { return stop_ || !inbox_.empty(); });
            if (stop_) return;
        }
    }

    Scheduler& scheduler_;
    bool by_loop_;
    std::chrono::nanoseconds token_time_;
    /// Read by tasks that may run after the engine is gone.
    std::shared_ptr<std::atomic<bool>> alive_{std::make_shared<std::atomic<bool>>(true)};
    std::mutex mutex_{};
    std::condition_variable woken_{};
    // Guarded by the mutex.
    std::vector<std::variant<JobPtr, JobId>> inbox_{};
    std::map<JobId, std::weak_ptr<JobEntry>> open_{};
    std::size_t tidy_at_{64};
    JobId last_id_{0};
    bool stop_{false};
    /// Of the loop: what is told once the slice's time is over.
    std::vector<Task> held_{};
    EngineCore core_;
    std::thread worker_{};
};

Engine::Engine(Scheduler& scheduler, EngineOptions const& options) {
    auto const& choice = chosen_isa();
    if (options.log) {
        if (!choice.warning.empty()) options.log(LogLevel::warning, choice.warning);
        options.log(LogLevel::info, "engine: instruction set " + std::string(isa_name()));
    }
    impl_ = std::make_unique<Impl>(scheduler, options);
}

Engine::~Engine() = default;

JobId Engine::enqueue(JobPtr entry) { return impl_->enqueue(std::move(entry)); }
void Engine::cancel(JobId id) { impl_->cancel(id); }
std::string_view Engine::instruction_set() const { return isa_name(); }

}  // namespace tinkxx::engine
