#pragma once

#include <tinkxx/detail/unique_function.hpp>
#include <tinkxx/result.hpp>

#include "engine/files/token_bytes.hpp"
#include "engine/model/adapter.hpp"
#include "engine/model/checkpoint.hpp"
#include "engine/model/model.hpp"
#include "engine/sample/sampler.hpp"
#include "engine/train/loss.hpp"
#include "engine/train/optimizer.hpp"
#include "engine/train/trainer.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// What an `Engine` can be asked to do. Models and adapters go by names that the caller chooses.

namespace tinkxx::engine {

struct ModelInfo {
    ModelConfig config{};
    /// Memory of the weights.
    std::size_t bytes{0};
    /// The bytes of its tokens are known, so that stop strings can be asked for.
    bool has_token_bytes{false};
};

struct AdapterInfo {
    std::string model{};
    LoraConfig config{};
    /// Steps of the optimizer so far.
    std::int64_t steps{0};
};

/// Reads a base model under a name of its own.
struct LoadModel {
    using Output = ModelInfo;
    static constexpr std::string_view operation{"load model"};
    std::string model{};
    std::filesystem::path folder{};
    /// A model that is in memory already, instead of a folder.
    std::shared_ptr<Model const> ready{};
    /// The bytes of a token. Empty: as the folder says (`read_token_bytes`); if that says nothing,
    /// stop strings are refused.
    TokenBytes token_bytes{};
};

/// Makes a fresh adapter; fails if there is one of that name.
struct CreateAdapter {
    using Output = AdapterInfo;
    static constexpr std::string_view operation{"create adapter"};
    std::string adapter{};
    std::string model{};
    LoraConfig config{};
};

/// Reads an adapter, in place of one of that name if there is one. Samples that have begun go on
/// with the old one.
struct LoadAdapter {
    using Output = AdapterInfo;
    static constexpr std::string_view operation{"load adapter"};
    std::string adapter{};
    std::string model{};
    std::filesystem::path folder{};
    OptimizerState state{OptimizerState::without};
};

/// A copy of the weights as they are now, e.g. to sample while training goes on. The state of
/// the optimizer is not copied. `to` may be used once the job is done.
struct CopyAdapter {
    using Output = AdapterInfo;
    static constexpr std::string_view operation{"copy adapter"};
    std::string adapter{};
    std::string to{};
};

struct SaveAdapter {
    using Output = void;
    static constexpr std::string_view operation{"save adapter"};
    std::string adapter{};
    std::filesystem::path folder{};
    OptimizerState state{OptimizerState::without};
};

/// Forgets an adapter. Samples that have begun go on.
struct DropAdapter {
    using Output = void;
    static constexpr std::string_view operation{"drop adapter"};
    std::string adapter{};
};

/// Losses and logprobs of an adapter, or of the bare model: exactly one of the names is set.
struct Forward {
    using Output = BatchResult;
    static constexpr std::string_view operation{"forward"};
    std::string adapter{};
    std::string model{};
    std::vector<Datum> data{};
    Loss loss{};
};

struct ForwardBackward {
    using Output = BatchResult;
    static constexpr std::string_view operation{"forward_backward"};
    std::string adapter{};
    std::vector<Datum> data{};
    Loss loss{};
};

struct OptimStep {
    using Output = StepResult;
    static constexpr std::string_view operation{"optim_step"};
    std::string adapter{};
    AdamParams params{};
};

/// Samples from an adapter, or from the bare model: exactly one of the names is set.
struct Sample {
    using Output = SampleResult;
    static constexpr std::string_view operation{"sample"};
    std::string adapter{};
    std::string model{};
    /// `adapter` and `on_done` of it are not used.
    SampleRequest request{};
};

/// Called with what came of a job.
template <class T>
using Done = tinkxx::detail::UniqueFunction<void(Result<T>)>;

/// A job and whom to tell.
template <class Job>
struct Ticket {
    Job job{};
    Done<typename Job::Output> done{};
};

using JobId = std::uint64_t;

/// A job on its way through the engine.
struct JobEntry {
    JobId id{0};
    /// Set by whoever cancels; then nobody is told any more.
    std::atomic<bool> cancelled{false};
    std::variant<Ticket<LoadModel>, Ticket<CreateAdapter>, Ticket<LoadAdapter>, Ticket<CopyAdapter>,
                 Ticket<SaveAdapter>, Ticket<DropAdapter>, Ticket<Forward>, Ticket<ForwardBackward>,
                 Ticket<OptimStep>, Ticket<Sample>>
        ticket{};
};
using JobPtr = std::shared_ptr<JobEntry>;

}  // namespace tinkxx::engine
