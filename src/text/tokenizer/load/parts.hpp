#pragma once

#include "text/regex/scanners.hpp"
#include "text/tokenizer/load/json_reader.hpp"
#include "text/tokenizer/models/model.hpp"
#include "text/tokenizer/steps/decoders.hpp"
#include "text/tokenizer/steps/normalizers.hpp"
#include "text/tokenizer/steps/post_processor.hpp"
#include "text/tokenizer/steps/pre_tokenizers.hpp"
#include "text/tokenizer/vocabulary/added_tokens.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::text {

/// What a tokenizer is made of.
struct Parts {
    Normalizers normalizers;
    PreTokenizers pre_tokenizers;
    /// All that the pre-tokenizers do, if that is to cut at a known pattern.
    std::optional<KnownPattern> pattern;
    /// Cutting asks where a piece was in the original text.
    bool needs_ranges{false};
    std::unique_ptr<Model const> model;
    AddedTokens added;
    PostSteps post_steps;
    Decoders decoders;
    /// Decoding is joining the bytes of tokens.
    bool decodes_bytes{false};
    /// Added tokens are not spelled as bytes are.
    bool added_are_bytes{false};
};

/// Throws `ValidationError`.
[[nodiscard]] Parts read_tokenizer_json(std::string_view json);
[[nodiscard]] Parts read_tiktoken(Tiktoken const& tiktoken);

/// One section of a `tokenizer.json`; `json` is its text. A byte-level vocabulary needs no bytes
/// written as characters, so `bytes` leaves that step out.
[[nodiscard]] Normalizers read_normalizers(std::string_view json);
struct PreTokenizersRead {
    PreTokenizers steps;
    std::optional<KnownPattern> pattern{};
    /// The last step is to write bytes as characters; it was left out.
    bool ends_with_bytes{false};
    bool has_first_metaspace{false};
};
[[nodiscard]] PreTokenizersRead read_pre_tokenizers(std::string_view json);
[[nodiscard]] PostSteps read_post_steps(std::string_view json);
struct DecodersRead {
    Decoders decoders;
    bool only_bytes{false};
};
[[nodiscard]] DecodersRead read_decoders(std::string_view json);

/// The members of a model. Null is as good as nothing.
struct ModelSection {
    std::string type{};
    std::string unknown{};
    std::string prefix{};
    std::string suffix{};
    bool fuse_unknown{false};
    bool byte_fallback{false};
    bool ignore_merges{false};
    double dropout{0};
    std::uint32_t unknown_id{no_token};
    std::size_t longest_word{100};
    // The large ones, as text.
    std::string_view vocabulary{};
    std::string_view merges{};
};
[[nodiscard]] ModelSection read_model_section(JsonReader& reader);
/// `byte_level` is set to false if the vocabulary cannot be read as bytes.
[[nodiscard]] std::unique_ptr<Model const> make_model(ModelSection const& section,
                                                      bool& byte_level);

/// The added tokens, whose ids follow from the model's, in the order of the file.
[[nodiscard]] AddedTokens make_added_tokens(std::vector<AddedToken> tokens, Model const& model,
                                            Normalizers const& normalizers);

}  // namespace tinkxx::text
