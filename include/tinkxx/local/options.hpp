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
    /// Its name for clients, such as `tinkxx/tiny`. Empty: the name of its folder.
    std::string name{};
    /// A folder in the Hugging Face layout: `config.json` and `*.safetensors`.
    std::filesystem::path folder{};
    /// Each of the tokens 0 to 255 is that byte. Without it stop texts are refused: nobody knows
    /// the text of a token.
    bool byte_level{false};
};

/// The limits of a server. A request that exceeds one is refused with a message that names it.
struct Limits {
    /// Bytes of one request body, before and after decompression.
    std::size_t request_bytes{std::size_t{256} << 20U};
    /// Bytes of a JSON body, which takes many times its size in memory while it is parsed.
    std::size_t json_bytes{std::size_t{64} << 20U};
    /// Bytes of bodies that are queued or being parsed. One body is always accepted.
    std::size_t reading_bytes{std::size_t{256} << 20U};
    /// Tokens of a prompt or datum. 0: the context length of the model.
    std::size_t prompt_tokens{0};
    /// Completions per request.
    std::size_t num_samples{1024};
    /// Numbers in the loss inputs of one training request, with sparse matrices counted as dense
    /// ones.
    std::size_t batch_cells{std::size_t{1} << 25U};
    /// Log-probabilities of other tokens (`topk_…`, `target_prompt_logprobs`) that one sample
    /// request may ask for.
    std::size_t result_cells{std::size_t{1} << 22U};
    /// Bytes of all adapters, for training and for sampling.
    std::size_t adapter_bytes{std::size_t{4} << 30U};
    /// Pending sample requests; further ones are refused with 429. A session can have at most half
    /// of what the others leave, but always 64.
    std::size_t pending_samples{20'000};
    /// Bytes of the prompts and results of pending sample requests.
    std::size_t pending_sample_bytes{std::size_t{1} << 30U};
    /// Pending training requests of each model. A request that others wait for is always accepted.
    std::size_t pending_steps{1'000};
    /// Bytes in memory of the data of pending training requests, over all models.
    std::size_t pending_bytes{std::size_t{1} << 30U};
    /// Bytes of results that were fetched and are kept in case the answer was lost.
    std::size_t fetched_bytes{std::size_t{128} << 20U};
    /// Bytes of results kept in memory; other results are read from disk.
    std::size_t result_bytes{std::size_t{256} << 20U};
    /// Active sessions. Beyond this number, the session that has been silent longest is ended, if
    /// it has neither a model nor a sampler.
    std::size_t sessions{10'000};
    /// Ended sessions without a checkpoint. The oldest are removed.
    std::size_t ended_sessions{10'000};
    /// Bytes of the tags, names and metadata of one session, model or checkpoint.
    std::size_t metadata_bytes{std::size_t{64} << 10U};
    /// Samplers, and models, per session.
    std::size_t session_parts{10'000};
    /// Bytes remembered of all sessions, models and samplers: 512 for each, plus metadata. To make
    /// room, the oldest ended sessions are forgotten.
    std::size_t kept_bytes{std::size_t{128} << 20U};
    /// Results that nobody has fetched, and results that were fetched and are kept (each). The
    /// oldest are forgotten.
    std::size_t results{100'000};
};

/// Which threads compute.
enum class Compute : std::uint8_t {
    own_threads,  ///< the server's own threads
    loop,         ///< the loop of its runtime, in virtual time, for simulations
};

/// How a local server works. Every field but `models` has a working default.
struct ServerOptions {
    std::vector<ModelSource> models{};
    /// The data directory: a folder that does not exist, is empty, or was made by a server. Empty:
    /// a temporary folder, which is removed at the end.
    std::filesystem::path home{};
    /// The key that clients must send. Empty: any key, or none, is accepted.
    std::string api_key{};
    /// Host names by which clients may address the server, besides `localhost` and IP addresses.
    /// Without a key, other names are refused, so that web pages cannot use the server by DNS
    /// rebinding.
    std::vector<std::string> hosts{};
    /// The number of compute threads; 0: one per CPU.
    unsigned threads{0};
    /// Bytes for the key-value cache of each model.
    std::size_t cache_bytes{std::size_t{1} << 30U};
    Compute compute{Compute::own_threads};
    Limits limits{};
    /// A session without a heartbeat for this long has ended; its models are unloaded.
    std::chrono::seconds session_timeout{300};
    /// How long an ended session is listed; one with a checkpoint is listed as long as the
    /// checkpoint exists.
    std::chrono::seconds session_keep{std::chrono::hours{24 * 30}};
    /// How long a poll is held until the result is ready. Clients wait for 45 s.
    std::chrono::milliseconds poll_hold{std::chrono::seconds{40}};
    /// How long a training request waits for missing requests with lower numbers, which are then
    /// skipped.
    std::chrono::seconds gap_timeout{330};
    /// Larger results are announced before they are sent.
    std::size_t inline_result_bytes{std::size_t{1} << 20U};
    /// Saved weights that were not sampled from for this long are dropped from memory, and loaded
    /// again when they are needed.
    std::chrono::seconds weights_keep{300};
    /// How long a result is kept after it was fetched, and how long if it is never fetched.
    std::chrono::seconds fetched_keep{120};
    std::chrono::seconds unfetched_keep{std::chrono::hours{24}};
    /// Faults for testing clients, such as `429:0.05,500:0.01,delay:50ms..2s,drop:0.01`. Empty:
    /// none.
    std::string chaos{};
    std::uint64_t chaos_seed{0};
    /// Whether acknowledged data survives a power loss, or only the end of the process.
    bool survive_power_loss{true};
    /// Receives the log lines of the server and its listeners, on the loop or on the callback
    /// executor. Not called after `Server::stop` has returned. Without `stop` it may be called
    /// until the last handle and transport are gone and the work they started has ended.
    LogSink log{};
};

}  // namespace tinkxx::local
