#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/types/sampling.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::wire {

/// Which members a request carries (R-WIRE-10): some servers refuse those they do not know.
enum class Members : std::uint8_t {
    newest,
    before_0_26,  ///< those that release 0.25.0 of the official SDK sent
};

/// The body of asample is two pieces: a head with the ids of one attempt, and a tail that all
/// attempts share. Head and tail, one after the other, are one JSON object.
[[nodiscard]] std::string encode_sample_head(std::string_view sampling_session_id,
                                             std::int64_t seq_id);
[[nodiscard]] std::string encode_sample_tail(std::span<ModelInputChunk const> prompt,
                                             SamplingParams const& params,
                                             SampleOptions const& options,
                                             bool record_stability_info, Members members);

/// What is wrong with the arguments of a `sample`, before anything is sent (R-SAMP-08, C-61).
[[nodiscard]] std::optional<ErrorDetails> sample_problem(ModelInput const& prompt,
                                                         SamplingParams const& params,
                                                         SampleOptions const& options);

/// The answer to a submit: the id of a pending result, or the result.
struct Submitted {
    std::string request_id{};
    std::optional<std::string> model_id{};
    std::optional<std::vector<std::string>> sample_sequence_ids{};
    /// The result itself, as JSON, from a server that was done at once; then nothing is pending
    /// (R-SAMP-03). Points into the body.
    std::string_view result{};
};
/// `operation` is named in errors.
[[nodiscard]] Result<Submitted> decode_submitted(std::string_view json,
                                                 std::string_view operation = "asample");

/// Errors are of kind validation; their field is the place in the body, such as
/// `/sequences/0/tokens/3`.
[[nodiscard]] Result<SampleResponse> decode_sample_json(std::string_view json);
[[nodiscard]] Result<SampleResponse> decode_sample_proto(std::string_view body);

/// A response as callers get it.
struct CompletedSample {
    SampleResponse response{};
    /// Names of the options that the server did not answer, whose members are empty (C-30).
    std::string unanswered{};
};
/// Puts the sequence ids of the submit onto the sequences (R-SAMP-72), the leading null back to
/// prompt logprobs of one value too few (R-WIRE-10), and looks for what was asked for and not
/// answered (R-SAMP-09, C-30).
[[nodiscard]] Result<CompletedSample> complete_sample(SampleResponse response,
                                                      std::vector<std::string> const* sequence_ids,
                                                      std::optional<std::int64_t> prompt_length,
                                                      SampleOptions const& options,
                                                      bool record_stability_info);

/// The estimated size of a prompt in a request (R-SAMP-27).
[[nodiscard]] std::int64_t estimate_prompt_bytes(ModelInput const& prompt);

}  // namespace tinkxx::wire
