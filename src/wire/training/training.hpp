#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/types/training.hpp>

#include "wire/sampling/sample.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::wire {

// Forward and backward --------------------------------------------------------------------------

/// How forward and backward requests are written (R-WIRE-10).
using Encoding = SubmitEncoding;
enum class Compression : std::uint8_t { none, zstd };

/// One chunk of a `forward_backward` or a `forward`. What it names must stay while it is encoded.
struct ForwardBackward {
    std::string_view model_id{};
    std::int64_t seq_id{0};
    std::span<Datum const> data{};
    Loss const* loss{nullptr};
    bool forward_only{false};
};

/// A body with the header lines that describe it.
struct EncodedBody {
    std::string bytes{};
    std::string_view content_type{};
    /// Empty: none.
    std::string_view content_encoding{};
};

/// The body, made in one go: each tensor is copied once, from the caller's memory to the body or
/// into the compressor. Fails with an error of kind validation that names the datum if the
/// encoding has no words for something: image pointers in protobuf (R-TRAIN-37), spans in JSON
/// (R-TRAIN-38). JSON is never compressed.
[[nodiscard]] Result<EncodedBody> encode_forward_backward(ForwardBackward const& request,
                                                          Encoding encoding,
                                                          Compression compression);
/// The bytes of such a body with another number in it: for a request whose turn comes earlier than
/// was foreseen when it was written.
[[nodiscard]] Result<std::string> renumber_forward_backward(std::string_view bytes,
                                                            Encoding encoding,
                                                            Compression compression,
                                                            std::int64_t seq_id);
/// Where such a body goes, below the base URL: JSON has its own place for `forward`.
[[nodiscard]] std::string_view forward_backward_path(Encoding encoding, bool forward_only) noexcept;

/// The bytes of the protobuf form, before compression.
[[nodiscard]] std::size_t proto_bytes(ForwardBackward const& request);

/// The answer in either form. `operation` is named in errors, whose field is the place.
[[nodiscard]] Result<ForwardBackwardOutput> decode_forward_backward_json(std::string_view operation,
                                                                         std::string_view json);
[[nodiscard]] Result<ForwardBackwardOutput> decode_forward_backward_proto(
    std::string_view operation, std::string_view body);

// Models ----------------------------------------------------------------------------------------

/// create_model.
struct CreateModel {
    std::string session_id{};
    std::int64_t model_seq_id{0};
    std::string base_model{};
    std::optional<UserMetadata> user_metadata{};
    LoraConfig lora_config{};
    OptimizerConfig optimizer_config{};
};
[[nodiscard]] std::string encode_create_model(CreateModel const& request, Members members);
/// The id of the model.
[[nodiscard]] Result<std::string> decode_model_created(std::string_view json);

[[nodiscard]] std::string encode_get_info(std::string_view model_id);
[[nodiscard]] Result<ModelInfo> decode_model_info(std::string_view json);

[[nodiscard]] std::string encode_unload_model(std::string_view model_id);
/// The id of the model that is gone.
[[nodiscard]] Result<std::string> decode_model_unloaded(std::string_view json);

// Steps -----------------------------------------------------------------------------------------

struct OptimStep {
    std::string_view model_id{};
    std::int64_t seq_id{0};
    OptimizerParams params{};
};
[[nodiscard]] std::string encode_optim_step(OptimStep const& request);
[[nodiscard]] Result<OptimStepResult> decode_optim_step(std::string_view json);

// Weights ---------------------------------------------------------------------------------------

/// save_weights: a checkpoint to train on from.
struct SaveWeights {
    std::string model_id{};
    std::int64_t seq_id{0};
    /// A name, no path.
    std::string name{};
    std::optional<std::int64_t> ttl_seconds{};
    bool overwrite{false};
    std::optional<UserMetadata> user_metadata{};
};
[[nodiscard]] std::string encode_save_weights(SaveWeights const& request, Members members);
[[nodiscard]] Result<SaveResult> decode_weights_saved(std::string_view json);

/// save_weights_for_sampler: under a name, or for one sampling session.
struct SaveWeightsForSampler {
    std::string model_id{};
    std::int64_t seq_id{0};
    std::optional<std::string> name{};
    std::optional<std::int64_t> sampling_session_seq_id{};
    std::optional<std::int64_t> ttl_seconds{};
    std::optional<UserMetadata> user_metadata{};
};
[[nodiscard]] std::string encode_save_weights_for_sampler(SaveWeightsForSampler const& request,
                                                          Members members);
struct SavedForSampler {
    std::optional<std::string> path{};
    std::optional<std::string> sampling_session_id{};
    std::optional<std::int64_t> size_bytes{};
};
/// Fails if the answer has neither a path nor a session (R-TRAIN-64).
[[nodiscard]] Result<SavedForSampler> decode_saved_for_sampler(std::string_view json);

/// save_weights_external.
struct SaveWeightsExternal {
    std::string model_id{};
    std::int64_t seq_id{0};
    std::string name{};
    std::optional<std::int64_t> ttl_seconds{};
    /// Left out if empty.
    std::vector<std::string> age_recipients{};
};
[[nodiscard]] std::string encode_save_weights_external(SaveWeightsExternal const& request);
/// Fails if the answer has no path (R-TRAIN-67).
[[nodiscard]] Result<SaveResult> decode_saved_external(std::string_view json);

/// load_weights, into a model that is there or into a new one.
struct LoadWeights {
    /// Into a model that is there: both of these.
    std::optional<std::string> model_id{};
    std::optional<std::int64_t> seq_id{};
    /// Into a new model: both of these, and the three behind them if wanted.
    std::optional<std::string> session_id{};
    std::optional<std::int64_t> model_seq_id{};
    std::optional<std::string> base_model{};
    std::optional<UserMetadata> user_metadata{};
    std::optional<OptimizerConfig> optimizer_config{};
    std::string path{};
    bool optimizer{false};
    /// A secret.
    std::optional<std::string> weights_access_token{};
};
[[nodiscard]] std::string encode_load_weights(LoadWeights const& request, Members members);
[[nodiscard]] Result<LoadResult> decode_weights_loaded(std::string_view json);

[[nodiscard]] std::string encode_weights_info(std::string_view tinker_path);
[[nodiscard]] Result<WeightsInfo> decode_weights_info(std::string_view json);

struct CopyWeights {
    std::string source_path{};
    std::string destination_project_id{};
    std::optional<std::int64_t> ttl_seconds{};
};
[[nodiscard]] std::string encode_copy_weights(CopyWeights const& request);
/// The path of the copy.
[[nodiscard]] Result<std::string> decode_weights_copied(std::string_view json);

}  // namespace tinkxx::wire
