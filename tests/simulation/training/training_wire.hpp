#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::simulation {

/// A tensor as it was sent, whatever the encoding.
struct SentTensor {
    bool integers{false};
    std::vector<std::int64_t> shape{};
    std::vector<double> values{};

    bool operator==(SentTensor const&) const = default;
};

/// One example as it was sent. By a convention of the simulation its first tokens are the number of
/// the call and its place among the call's data.
struct SentDatum {
    std::vector<std::int64_t> tokens{};
    std::map<std::string, SentTensor, std::less<>> inputs{};

    [[nodiscard]] std::int64_t place() const { return tokens.size() > 1 ? tokens[1] : -1; }
    bool operator==(SentDatum const&) const = default;
};

enum class TrainKind : std::uint8_t {
    create_model,
    load_new,  ///< a model from a checkpoint, by one request
    forward,
    forward_backward,
    optim_step,
    save_state,
    save_for_sampler,
    save_external,
    load_state,
    unload,
};
[[nodiscard]] std::string_view to_string(TrainKind kind) noexcept;

/// What a request about a model asks for: equal for equal requests, whatever the encoding.
struct TrainRequest {
    TrainKind kind{};
    std::string model_id{};
    std::int64_t seq_id{0};
    /// Of a pass.
    std::string loss{};
    std::map<std::string, double, std::less<>> config{};
    std::vector<SentDatum> data{};
    /// Of a step: learning rate, both betas, eps, decay, largest norm.
    std::array<double, 6> adam{};
    /// Of a save; of a load the path.
    std::string name{};
    std::int64_t sampling_session_seq{-1};
    bool overwrite{false};
    bool optimizer{false};
    /// Of a model to be.
    std::string session_id{};
    std::int64_t model_seq{-1};

    [[nodiscard]] bool pass() const noexcept {
        return kind == TrainKind::forward || kind == TrainKind::forward_backward;
    }
    bool operator==(TrainRequest const&) const = default;
};

struct ReadRequest {
    TrainRequest request{};
    bool protobuf{false};
    bool zstd{false};
};
/// Reads a request with a decoder of its own, which shares nothing with the one under test. Empty
/// if the path is none of training, or if the body is not what belongs there.
[[nodiscard]] std::optional<ReadRequest> read_train_request(std::string_view path,
                                                            std::string_view body);

/// A model that is being trained, as numbers that depend on everything that was done to it, and on
/// the order in which it was.
struct ModelState {
    std::uint64_t weights{0};
    std::uint64_t gradient{0};
    std::uint64_t optimizer{0};

    bool operator==(ModelState const&) const = default;
};
[[nodiscard]] ModelState fresh_state(std::string_view model_id);

/// What a pass tells; all numbers are sums of a few powers of two, so that sums of them are exact.
struct PassResult {
    std::vector<std::vector<float>> logprobs{};
    std::map<std::string, double, std::less<>> metrics{};
};
[[nodiscard]] PassResult apply_pass(ModelState& state, TrainRequest const& request);
/// What the step tells under `state:unique`.
double apply_step(ModelState& state, TrainRequest const& request);
/// What is drawn from weights.
[[nodiscard]] std::vector<std::int32_t> drawn_tokens(std::uint64_t weights);

/// A pass's result as a server writes it.
[[nodiscard]] std::string pass_json(PassResult const& result);
[[nodiscard]] std::string pass_proto(PassResult const& result);

}  // namespace tinkxx::simulation
