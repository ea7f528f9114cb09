#pragma once

#include <tinkxx/options.hpp>
#include <tinkxx/runtime.hpp>
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>
#include <tinkxx/types/datum.hpp>
#include <tinkxx/types/queue_state.hpp>
#include <tinkxx/types/sampling.hpp>
#include <tinkxx/types/training.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tinkxx::testing {

/// A request for samples that reached a `FakeTinker`.
struct AskedSample {
    /// What is sampled from: a base model, or weights, `tinker://…`.
    std::string model{};
    ModelInput prompt{};
    SamplingParams params{};
    SampleOptions options{};
    TimePoint at{};
};

/// A request about a model in training that reached a `FakeTinker`.
struct AskedStep {
    /// `create_model`, `forward`, `forward_backward`, `optim_step`, `save_weights`,
    /// `save_weights_for_sampler`, `load_weights` or `unload_model`.
    std::string call{};
    /// Of `create_model`: the id that the model gets.
    std::string model_id{};
    /// Of `create_model`.
    std::string base_model{};
    LoraConfig lora{};
    /// Of a forward or backward pass. A large one comes in several requests.
    std::vector<Datum> data{};
    std::string loss{};
    LossConfig loss_config{};
    /// Of `optim_step`.
    AdamParams adam{};
    /// Of a save: its name. Of a load: its path.
    std::string path{};
    TimePoint at{};
};

/// How a `FakeTinker` is made.
struct FakeTinkerOptions {
    /// The base models that it offers.
    std::vector<std::string> models{"fake/model"};
    /// Of the clock: the same seed gives the same run.
    std::uint64_t seed{0};
    /// Whether waiting for a future moves the clock to whatever happens next. Without it, time
    /// moves when the test calls `clock().advance`.
    bool auto_advance{true};
};

/// A Tinker service inside a test: it starts sessions, samples and trains as its script says, on a
/// clock that the test controls. No network, no threads, no model, and no time passes.
///
///     testing::FakeTinker tinker;
///     tinker.on_sample([](testing::AskedSample const& asked) {
///         EXPECT_EQ(asked.params.max_tokens, 8);
///         return SampleResponse{.sequences = {{.tokens = {4, 5, 6}}}};
///     });
///     tinker.pause(QueueState::paused_capacity, "no machine is free", 10min);
///     ServiceClient service{tinker.options()};
///     … the code under test …
///     EXPECT_EQ(tinker.samples().size(), 3U);
///
/// For answers of real weights, embed a server: <tinkxx/local/service_client.hpp>. For raw HTTP,
/// script a `FakeTransport`.
///
/// All members: on the thread of the test. It must outlive the calls of its clients.
class FakeTinker {
public:
    explicit FakeTinker(FakeTinkerOptions options = FakeTinkerOptions());
    FakeTinker(FakeTinker const&) = delete;
    FakeTinker& operator=(FakeTinker const&) = delete;
    ~FakeTinker();

    /// For a client of this service. Add what the test wants to be different.
    [[nodiscard]] ClientOptions options() const;
    [[nodiscard]] ManualClock& clock() const noexcept;
    /// The HTTP requests below, to look at them or to answer some by rules.
    [[nodiscard]] FakeTransport& transport() const noexcept;

    // What it answers -----------------------------------------------------------------------

    /// Gives the answer to each request for samples. By default every sequence has up to three
    /// tokens, 1, 2 and 3. Log-probabilities that are wanted and missing are -1. What `fn` throws
    /// is answered as a failure of the request.
    void on_sample(std::function<SampleResponse(AskedSample const&)> fn);
    /// Gives the answer to each forward or backward pass. By default the log-probability of every
    /// token is -1.
    void on_pass(std::function<ForwardBackwardOutput(AskedStep const&)> fn);

    // What goes wrong -----------------------------------------------------------------------

    /// Lets requests wait in the queue: until `time` is over, each question for a result is
    /// answered with this state and reason.
    void pause(QueueState state, std::string reason, std::chrono::nanoseconds time);
    /// Answers the next `times` requests to sample or train with this HTTP status, such as 429 or
    /// 503, and `headers`, such as `retry-after`.
    void refuse(int status, int times = 1, Headers headers = {});
    /// Fails the next `times` results with `error`, as a service does that accepted a request and
    /// could not carry it out.
    void fail_results(std::string error, int times = 1);
    /// Answers 402 for so long: the account cannot be billed.
    void block_billing(std::chrono::nanoseconds time);
    /// The server restarts and loses what it had in memory: results that were not fetched (410),
    /// and all models in training, whose runs are listed as corrupted. Checkpoints stay.
    void restart();

    // What it was asked ---------------------------------------------------------------------

    [[nodiscard]] std::vector<AskedSample> const& samples() const noexcept;
    /// In the order of their coming, repetitions included.
    [[nodiscard]] std::vector<AskedStep> const& steps() const noexcept;
    /// The names of the calls among them: `create_model`, `forward_backward`, `optim_step`, ….
    [[nodiscard]] std::vector<std::string> step_names() const;
    /// Log lines of the clients, all levels.
    [[nodiscard]] std::vector<std::string> const& log() const noexcept;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace tinkxx::testing
