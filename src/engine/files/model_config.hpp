#pragma once

#include <tinkxx/result.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::engine {

enum class Architecture : std::uint8_t { llama, qwen2, qwen3 };

/// Rotary position embedding; `llama3` stretches the slow frequencies.
struct RopeConfig {
    double theta{10000.0};
    bool llama3{false};
    double factor{1.0};
    double low_freq_factor{1.0};
    double high_freq_factor{1.0};
    double original_max_positions{0.0};

    bool operator==(RopeConfig const&) const = default;
};

/// The shape of a model, read from `config.json` of transformers 4 or 5.
struct ModelConfig {
    Architecture architecture{Architecture::llama};
    int vocab_size{0};
    int hidden_size{0};
    int intermediate_size{0};
    int layers{0};
    int heads{0};
    int kv_heads{0};
    int head_dim{0};
    /// Positions the model was made for. Longer inputs are refused.
    int max_positions{0};
    float rms_norm_eps{1e-6F};
    /// q, k and v projections have a bias (Qwen2).
    bool attention_bias{false};
    /// Heads of q and k are normalised before the rotation (Qwen3).
    bool qk_norm{false};
    /// The unembedding is the embedding.
    bool tied_embeddings{false};
    RopeConfig rope{};
    /// Tokens that end a text; may be empty.
    std::vector<int> eos_tokens{};

    [[nodiscard]] int q_size() const noexcept { return heads * head_dim; }
    [[nodiscard]] int kv_size() const noexcept { return kv_heads * head_dim; }
    /// Number of weights of the whole model.
    [[nodiscard]] std::uint64_t parameters() const noexcept;

    bool operator==(ModelConfig const&) const = default;
};

/// A number of the configuration as the size of something; they are checked when it is read.
constexpr std::size_t wide(int value) { return static_cast<std::size_t>(value); }

/// Reads the text of a `config.json`. Fails with a validation error whose field is the option that
/// is missing, out of range or not supported: an unknown architecture, a sliding window, dropout,
/// another RoPE scaling, quantized weights and the like are refused rather than ignored.
Result<ModelConfig> parse_model_config(std::string_view text);

/// Reads `config.json` of a folder, and the end tokens of `generation_config.json` if it exists.
Result<ModelConfig> read_model_config(std::filesystem::path const& folder);

/// The text of a `config.json` in the layout that transformers 4 and 5 both read.
std::string write_model_config(ModelConfig const& config, std::string_view dtype);

/// Inverse frequencies of the rotation, head_dim / 2 of them.
std::vector<double> rope_frequencies(ModelConfig const& config);

}  // namespace tinkxx::engine
