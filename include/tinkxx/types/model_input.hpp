#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tinkxx {

class Tokenizer;

/// A token id in the vocabulary of a model.
using Token = std::int32_t;

/// Text as token ids.
struct EncodedTextChunk {
    std::vector<Token> tokens{};

    bool operator==(EncodedTextChunk const&) const = default;
};

enum class ImageFormat : std::uint8_t { png, jpeg };

/// An image, as the bytes of its file.
struct ImageChunk {
    std::string data{};
    ImageFormat format{ImageFormat::png};
    /// The expected number of tokens. The service computes the number itself, and refuses the
    /// request early if it differs.
    std::optional<std::int64_t> expected_tokens{};

    bool operator==(ImageChunk const&) const = default;
};

/// An image that the service already stores.
struct ImageAssetPointerChunk {
    std::string location{};
    ImageFormat format{ImageFormat::png};
    std::optional<std::int64_t> expected_tokens{};

    bool operator==(ImageAssetPointerChunk const&) const = default;
};

/// Audio features, as the bytes of their tensor container.
struct DmelChunk {
    std::string dmel{};

    bool operator==(DmelChunk const&) const = default;
};

using ModelInputChunk =
    std::variant<EncodedTextChunk, ImageChunk, ImageAssetPointerChunk, DmelChunk>;

/// The input of a model: text, images and audio, in order.
///
///     auto prompt = ModelInput::from_tokens({9707, 11, 1879});
///     auto longer = prompt.append(ImageChunk{.data = png, .expected_tokens = 64});
struct ModelInput {
    std::vector<ModelInputChunk> chunks{};

    [[nodiscard]] static ModelInput empty() { return {}; }
    /// One chunk of text; no chunk at all if `tokens` is empty.
    [[nodiscard]] static ModelInput from_tokens(std::vector<Token> tokens);
    /// As above, with the tokens of a text.
    [[nodiscard]] static ModelInput from_text(std::string_view text, Tokenizer const& tokenizer);

    /// The token ids of all chunks. Throws `ValidationError` if one of them is not text.
    [[nodiscard]] std::vector<Token> to_tokens() const;
    /// The number of tokens. Throws `ValidationError` if an image has no `expected_tokens` or audio
    /// has a malformed header.
    [[nodiscard]] std::int64_t length() const;

    /// A copy with one more chunk.
    [[nodiscard]] ModelInput append(ModelInputChunk chunk) const;
    /// A copy with one more token, in the last chunk if that is text.
    [[nodiscard]] ModelInput append_int(Token token) const;

    bool operator==(ModelInput const&) const = default;
};

/// The number of tokens of one chunk. Throws as `ModelInput::length`.
[[nodiscard]] std::int64_t length(ModelInputChunk const& chunk);

}  // namespace tinkxx
