#pragma once

#include <tinkxx/log.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tinkxx::local {

/// A base model that a server offers.
struct ModelSource {
    /// What clients call it, such as `tinkxx/tiny`. Empty: the name of its folder.
    std::string name{};
    /// In the layout of Hugging Face: `config.json` and `*.safetensors`.
    std::filesystem::path folder{};
    /// Each of the tokens 0 to 255 is that byte. Without it stop texts are refused: nobody knows
    /// the text of a token.
    bool byte_level{false};
};

/// What a server takes on. What exceeds a limit is refused with a message that names it.
struct Limits {
    /// Of one request body, also once it is decompressed.
    std::size_t request_bytes{std::size_t{256} << 20U};
    /// Of one that is JSON, which takes many times its size while it is read.
    std::size_t json_bytes{std::size_t{64} << 20U};
    /// Bodies that wait to be read, or are being read. One is always taken.
    std::size_t reading_bytes{std::size_t{256} << 20U};
    /// Tokens of a prompt or of a datum. 0: as many as the model has positions.
    std::size_t prompt_tokens{0};
    /// Completions that one request may ask for.
    std::size_t num_samples{1024};
    /// Targets, weights and the like of one training request, those counted that a sparse matrix
    /// leaves out.
    std::size_t batch_cells{std::size_t{1} << 25U};
    /// Log-probabilities of other tokens (`topk_…`, `target_prompt_logprobs`) that one sample
    /// request may ask for.
    std::size_t result_cells{std::size_t{1} << 22U};
    /// Memory of all adapters, those that are trained and those that are sampled from.
    std::size_t adapter_bytes{std::size_t{4} << 30U};
    /// Sample requests that are accepted and not done. Beyond, clients are asked to come again
    /// (429). A session gets no more than half of what the others leave, but always 64.
    std::size_t pending_samples{20'000};
    /// Prompts and results of sample requests that are accepted and not done.
    std::size_t pending_sample_bytes{std::size_t{1} << 30U};
    /// Training requests that are accepted and not done, for each model. One that others wait for
    /// is always taken.
    std::size_t pending_steps{1'000};
    /// Data of training requests that are accepted and not done, as they lie in memory, of all
    /// models.
    std::size_t pending_bytes{std::size_t{1} << 30U};
    /// Results that were fetched and are still kept, in case an answer was lost.
    std::size_t fetched_bytes{std::size_t{128} << 20U};
    /// Results that are kept in memory; others are read from the disk.
    std::size_t result_bytes{std::size_t{256} << 20U};
    /// Sessions that are active. Beyond, the one that is silent for longest ends, if it has
    /// neither a model nor a sampler.
    std::size_t sessions{10'000};
    /// Sessions that have ended, without those that have a checkpoint. The oldest are removed.
    std::size_t ended_sessions{10'000};
    /// Tags, names and metadata that one session, model or checkpoint may have.
    std::size_t metadata_bytes{std::size_t{64} << 10U};
    /// Samplers of one session, and models that it has made.
    std::size_t session_parts{10'000};
    /// What is remembered of all sessions, models and samplers: 512 bytes for each, and metadata.
    /// Of sessions that have ended, the oldest are forgotten to make room.
    std::size_t kept_bytes{std::size_t{128} << 20U};
    /// Results that nobody has fetched, and those that were fetched and are still kept, each. The
    /// oldest are forgotten.
    std::size_t results{100'000};
};

/// Who computes.
enum class Compute : std::uint8_t {
    own_threads,  ///< threads of the server's own
    loop,         ///< the loop of its runtime, in virtual time: for simulations
};

/// How a local server works. Every field but `models` has a working default.
struct ServerOptions {
    std::vector<ModelSource> models{};
    /// Where checkpoints and results are kept: a folder that is empty, does not exist yet, or is
    /// a server's already. Empty: a temporary folder, removed in the end.
    std::filesystem::path home{};
    /// What clients must send as their key. Empty: any, or none.
    std::string api_key{};
    /// Names under which the server may be reached, beside `localhost` and addresses. Others are
    /// refused, unless there is a key: a page elsewhere must not drive it.
    std::vector<std::string> hosts{};
    /// Threads that compute; 0: one for each CPU.
    unsigned threads{0};
    /// Memory for keys and values of each model.
    std::size_t cache_bytes{std::size_t{1} << 30U};
    Compute compute{Compute::own_threads};
    Limits limits{};
    /// A session without a sign of life for so long has ended; its models are unloaded.
    std::chrono::seconds session_timeout{300};
    /// A session that has ended is listed for so long, and for as long as it has a checkpoint.
    std::chrono::seconds session_keep{std::chrono::hours{24 * 30}};
    /// How long a request for a result waits for it. Clients wait for 45 s.
    std::chrono::milliseconds poll_hold{std::chrono::seconds{40}};
    /// A training request that came too early waits so long for those before it; then they count
    /// as given up.
    std::chrono::seconds gap_timeout{330};
    /// A larger result is announced before it is sent.
    std::size_t inline_result_bytes{std::size_t{1} << 20U};
    /// Saved weights that nobody has sampled from for so long leave the memory. They are read again
    /// when somebody does.
    std::chrono::seconds weights_keep{300};
    /// How long a result is kept once it was fetched, and if nobody fetches it.
    std::chrono::seconds fetched_keep{120};
    std::chrono::seconds unfetched_keep{std::chrono::hours{24}};
    /// Faults for tests of clients, such as `429:0.05,500:0.01,delay:50ms..2s,drop:0.01`. Empty:
    /// none.
    std::string chaos{};
    std::uint64_t chaos_seed{0};
    /// Whether what was acknowledged survives the loss of power, or the end of the process only.
    bool survive_power_loss{true};
    /// Receives the lines of the server and of its listeners, on the loop or on the callback
    /// executor. Not called after `Server::stop` has returned; without a stop, until the last
    /// handle and transport are gone and what they had begun has ended.
    LogSink log{};
};

}  // namespace tinkxx::local
