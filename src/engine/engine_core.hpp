#pragma once

#include <tinkxx/scheduler.hpp>

#include "engine/common/threads.hpp"
#include "engine/jobs.hpp"
#include "engine/time_share.hpp"

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::engine {

struct CoreOptions {
    unsigned threads{1};
    /// As in `EngineOptions`, of the threads beside the caller's.
    int niceness{0};
    SamplerOptions sampler{};
    TrainOptions train{};
    /// Time so far, to share it fairly.
    std::function<std::chrono::nanoseconds()> clock{};
    /// Takes what is to be told on the caller's side.
    std::function<void(Task)> deliver{};
    /// Hands over new jobs by `accept` and `cancel`; called whenever a job may begin.
    std::function<void()> intake{};
};

/// What an engine does next, without a thread or a clock of its own. One thread at a time.
class EngineCore {
public:
    explicit EngineCore(CoreOptions options);
    ~EngineCore();
    EngineCore(EngineCore const&) = delete;
    EngineCore& operator=(EngineCore const&) = delete;

    void accept(JobPtr entry);
    void cancel(JobId id);
    /// Does one slice of work; false if there is none.
    bool step();
    /// Tokens computed so far.
    [[nodiscard]] std::uint64_t tokens() const noexcept { return tokens_; }

private:
    /// A base model and those that work on it.
    struct Base {
        std::string name{};
        std::shared_ptr<Model const> model{};
        std::unique_ptr<Trainer> trainer{};
        std::unique_ptr<Sampler> sampler{};
        /// Requests that the sampler has.
        std::size_t sampling{0};
        /// Pieces that one slice of training computes.
        std::size_t slice{1};
    };

    struct Running {
        JobPtr entry{};
        Trainer::Run run;
        bool backward{false};
    };

    /// The jobs of one adapter, or of a bare model.
    struct Lane {
        std::deque<JobPtr> waiting{};
        std::shared_ptr<Adapter> adapter{};
        Base* base{nullptr};
        std::optional<Running> running{};
        std::size_t sampling{0};
    };
    using Lanes = std::map<std::string, Lane>;

    struct Drawing {
        std::string lane{};
        Base* base{nullptr};
        Sampler::RequestId request{0};
    };

    void start_samples();
    Result<void> start_sample(std::string const& name, Lane& lane, JobPtr const& entry);
    void sampled(JobId id, JobPtr const& entry, Result<SampleResult> result);
    [[nodiscard]] Base* next_sampling();
    [[nodiscard]] Lanes::iterator next_training();
    bool sample_slice();
    void train_slice(Lanes::iterator at);
    /// Between the layers of a long piece.
    void pause();
    void begin_job(Lane& lane, JobPtr const& entry);
    void continue_run(Lane& lane);
    void forget_if_idle(Lanes::iterator at);

    Result<ModelInfo> run(Lane& lane, LoadModel& job);
    Result<AdapterInfo> run(Lane& lane, CreateAdapter& job);
    Result<AdapterInfo> run(Lane& lane, LoadAdapter& job);
    Result<AdapterInfo> run(Lane& lane, CopyAdapter& job);
    Result<void> run(Lane& lane, SaveAdapter& job);
    Result<void> run(Lane& lane, DropAdapter& job);
    Result<StepResult> run(Lane& lane, OptimStep& job);
    Result<Base*> base_named(std::string const& name, std::string_view operation);

    template <class Job>
    void tell(JobPtr const& entry, Result<typename Job::Output> result);

    CoreOptions options_;
    Threads threads_;
    TimeShare share_{};
    std::uint64_t tokens_{0};
    std::map<std::string, std::unique_ptr<Base>> bases_{};
    Lanes lanes_{};
    std::map<JobId, Drawing> drawing_{};
    /// Something may be ready to begin that was not before.
    bool changed_{false};
    std::string last_lane_{};
    std::string last_base_{};
    std::chrono::nanoseconds mark_{0};
};

}  // namespace tinkxx::engine
