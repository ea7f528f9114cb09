#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/types/datum.hpp>
#include <tinkxx/types/sampling.hpp>
#include <tinkxx/types/training.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The requests of the API as a server reads them. Members that nobody knows are passed over, null
// is as good as missing, and `type` may be left out: servers owe that to clients of all ages.
// Errors are of kind validation and category user; they name the operation, the place in the body
// and what should stand there.
//
// Integers have these ranges, of JSON and of protobuf; any other value is an error, never another
// number. The server may want less, and says so itself.
//   0 to 2^53 - 1   what is counted up or is a place in something: seq_id, model_seq_id,
//                   sampling_session_seq_id, cloned_sampler_id, prev_cursor, offset and length of
//                   a span; 0 to 2^31 - 1 for a seq_id in protobuf
//   0 to 2^31 - 1   how many: num_samples, max_tokens, topk_prompt_logprobs, topk_sample_logprobs,
//                   prompt_alt_tokens_k, prompt_logprobs_last_n, expected_tokens, rank
//   -1 to 2^31 - 1  top_k
//   1 to 200        limit of a search
//   32 bits         tokens
//   64 bits         ttl_seconds, the seed of an adapter, numbers in tensors; that of a sample also
//                   without a sign
// Dimensions of a tensor are not negative, and their product is the number of its elements.

namespace tinkxx::wire::server {

struct CreateSession {
    std::vector<std::string> tags{};
    /// Values that are no text are kept as JSON text.
    std::map<std::string, std::string> user_metadata{};
    std::string sdk_version{};
    std::optional<std::string> project_id{};
    std::optional<std::string> display_name{};
};
[[nodiscard]] Result<CreateSession> decode_create_session(std::string_view json);

/// The one text member of a body, such as `session_id` of a heartbeat.
[[nodiscard]] Result<std::string> decode_text(std::string_view operation, std::string_view json,
                                              std::string_view member);

struct Finish {
    /// `success`, `errored` or `interrupted`.
    std::string reason{};
    std::optional<std::string> detail{};
};
[[nodiscard]] Result<Finish> decode_finish(std::string_view json);

struct CreateSamplingSession {
    std::string session_id{};
    std::int64_t sampling_session_seq_id{0};
    std::optional<std::string> base_model{};
    std::optional<std::string> model_path{};
};
[[nodiscard]] Result<CreateSamplingSession> decode_create_sampling_session(std::string_view json);

struct Sample {
    std::optional<std::string> sampling_session_id{};
    std::optional<std::int64_t> seq_id{};
    std::optional<std::string> base_model{};
    std::optional<std::string> model_path{};
    ModelInput prompt{};
    SamplingParams params{};
    SampleOptions options{};
    bool record_stability_info{false};
};
/// `operation` is `asample` or `stream_sample`.
[[nodiscard]] Result<Sample> decode_sample(std::string_view operation, std::string_view json);

struct RetrieveFuture {
    std::string request_id{};
    /// Clients before 0.14 do not send it, and know no answer that is metadata only.
    bool allow_metadata_only{false};
};
[[nodiscard]] Result<RetrieveFuture> decode_retrieve_future(std::string_view json);

struct RetrieveFutures {
    std::string sampling_session_id{};
    std::int64_t cloned_sampler_id{0};
    std::int64_t prev_cursor{0};
    std::vector<std::string> retrieved_request_ids{};
};
[[nodiscard]] Result<RetrieveFutures> decode_retrieve_futures(std::string_view json);

struct CreateModel {
    std::string session_id{};
    std::int64_t model_seq_id{0};
    std::string base_model{};
    std::map<std::string, std::string> user_metadata{};
    LoraConfig lora{};
    /// `adamw` unless told otherwise.
    std::string optimizer{};
};
[[nodiscard]] Result<CreateModel> decode_create_model(std::string_view json);

struct ForwardBackward {
    std::string model_id{};
    std::optional<std::int64_t> seq_id{};
    std::vector<Datum> data{};
    std::string loss_fn{};
    LossConfig config{};
    bool forward_only{false};
};
/// `operation` is `forward_backward` or `forward`; JSON has its own member for each.
[[nodiscard]] Result<ForwardBackward> decode_forward_backward(std::string_view operation,
                                                              std::string_view json);
[[nodiscard]] Result<ForwardBackward> decode_forward_backward_proto(std::string_view body);

struct OptimStep {
    std::string model_id{};
    std::optional<std::int64_t> seq_id{};
    /// The family that the parameters belong to; `adam` holds for `adamw` only.
    std::string optimizer{"adamw"};
    AdamParams adam{};
};
[[nodiscard]] Result<OptimStep> decode_optim_step(std::string_view json);

/// Any of the three saves.
struct Save {
    std::string model_id{};
    std::optional<std::int64_t> seq_id{};
    std::optional<std::string> name{};
    std::optional<std::int64_t> sampling_session_seq_id{};
    std::optional<std::int64_t> ttl_seconds{};
    bool overwrite{false};
    std::optional<std::map<std::string, std::string>> user_metadata{};
    std::vector<std::string> age_recipients{};
};
[[nodiscard]] Result<Save> decode_save(std::string_view operation, std::string_view json);

struct LoadWeights {
    std::optional<std::string> model_id{};
    std::optional<std::int64_t> seq_id{};
    std::optional<std::string> session_id{};
    std::optional<std::int64_t> model_seq_id{};
    std::optional<std::string> base_model{};
    std::map<std::string, std::string> user_metadata{};
    std::string path{};
    bool optimizer{false};
    std::string optimizer_family{};
};
[[nodiscard]] Result<LoadWeights> decode_load_weights(std::string_view json);

struct CopyWeights {
    std::string source_path{};
    std::optional<std::string> destination_project_id{};
    std::optional<std::int64_t> ttl_seconds{};
};
[[nodiscard]] Result<CopyWeights> decode_copy_weights(std::string_view json);

/// `PUT …/ttl`: none removes the end.
struct Ttl {
    std::optional<std::int64_t> seconds{};
};
[[nodiscard]] Result<Ttl> decode_ttl(std::string_view json);

struct SearchSessions {
    std::optional<std::string> session_id{};
    std::optional<std::vector<std::string>> project_ids{};
    std::map<std::string, std::string> user_metadata{};
    std::optional<std::string> display_name{};
    /// Types such as `active`; none: all.
    std::optional<std::vector<std::string>> statuses{};
    std::int64_t limit{50};
    std::optional<std::string> after_session{};
};
[[nodiscard]] Result<SearchSessions> decode_search_sessions(std::string_view json);

/// A telemetry batch, by what a server may want of it.
struct Telemetry {
    std::string session_id{};
    std::size_t events{0};
};
[[nodiscard]] Result<Telemetry> decode_telemetry(std::string_view json);

/// Undoes a `Content-Encoding`: `zstd` and `identity` are known. A body that would grow beyond
/// `most` is refused.
[[nodiscard]] Result<std::string> decode_body(std::string_view operation, std::string body,
                                              std::string_view content_encoding, std::size_t most);

}  // namespace tinkxx::wire::server
