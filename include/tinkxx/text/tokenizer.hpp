#pragma once

#include <tinkxx/tokenizer.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::text {

/// What `encode` does with text that spells a special token, such as "<|im_end|>".
enum class SpecialText : std::uint8_t {
    parse,    ///< it becomes that token, as in Hugging Face's `encode`
    forbid,   ///< `encode` throws `ValidationError`
    as_text,  ///< it is encoded as any other text
};

/// What `encode` does with bytes that are not UTF-8.
enum class InvalidUtf8 : std::uint8_t {
    refuse,   ///< `encode` throws `ValidationError`
    replace,  ///< each broken sequence counts as one U+FFFD, as Python's `errors="replace"` has it
};

struct EncodeOptions {
    /// Add the tokens that the tokenizer puts around a text, such as a begin-of-text token.
    bool add_special{true};
    SpecialText special_text{SpecialText::parse};
    InvalidUtf8 invalid_utf8{InvalidUtf8::refuse};
};

struct DecodeOptions {
    /// Leave special tokens out.
    bool skip_special{false};
};

/// A range of bytes of the text that was encoded. Begins and ends between characters.
struct TextRange {
    std::size_t begin{};
    std::size_t end{};

    bool operator==(TextRange const&) const = default;
};

/// Tokens, and the part of the text from which each was made.
struct Encoding {
    std::vector<Token> tokens{};
    /// As many as tokens. Empty ranges at 0 for tokens that `add_special` added. Tokens that share
    /// a character have that whole character each.
    std::vector<TextRange> ranges{};

    bool operator==(Encoding const&) const = default;
};

/// The same ranges, counted in characters (code points) of `text`, as Python counts.
[[nodiscard]] std::vector<TextRange> to_character_ranges(std::string_view text,
                                                         std::span<TextRange const> ranges);

/// A token that is found in a text before anything else is done with it.
struct AddedToken {
    Token id{};
    std::string text{};
    bool special{false};
    bool lstrip{false};       ///< takes the white space before it along
    bool rstrip{false};       ///< takes the white space after it along
    bool single_word{false};  ///< counts only where no word character is beside it
    bool normalized{false};   ///< is looked for in the normalized text

    bool operator==(AddedToken const&) const = default;
};

/// What a `tokenizer.json` does not say, and `tokenizer_config.json` does. Empty: unknown.
struct NamedTokens {
    std::string bos{};
    std::string eos{};
    std::string pad{};
};

/// A vocabulary in the format of tiktoken.
struct Tiktoken {
    /// The content of the file: lines of a token in base64, a space, its rank.
    std::string_view ranks{};
    /// The regular expression that cuts a text into words.
    std::string_view pattern{};
    /// Text and id of each special token.
    std::vector<std::pair<std::string, Token>> special_tokens{};
};

class StreamDecoder;

/// The tokenizer of a language model: byte-level BPE, BPE with byte fallback, Unigram, WordPiece or
/// WordLevel. Gives the tokens that Hugging Face's `tokenizers` gives for the same file.
///
///     auto tokenizer = TextTokenizer::from_file("Qwen3-8B/tokenizer.json");
///     auto tokens = tokenizer.encode("Hello, world");
///     auto text = tokenizer.decode(tokens);
///
/// A cheap handle: copies share the vocabulary. Immutable; every member may be called from any
/// thread. Truncation and padding sections of a file are ignored.
class TextTokenizer final : public Tokenizer {
public:
    /// From the content of a `tokenizer.json`. These three throw `ValidationError` if it cannot be
    /// used; its `field` is the path of the wrong member, e.g. `model.merges[3]`.
    [[nodiscard]] static TextTokenizer from_json(std::string_view json);
    [[nodiscard]] static TextTokenizer from_json(std::string_view json, NamedTokens const& named);
    [[nodiscard]] static TextTokenizer from_tiktoken(Tiktoken const& tiktoken);
    [[nodiscard]] static TextTokenizer from_tiktoken(Tiktoken const& tiktoken,
                                                     NamedTokens const& named);
    /// From a `tokenizer.json` on disk. Folders and names of models: see `load.hpp`.
    [[nodiscard]] static TextTokenizer from_file(std::filesystem::path const& path);
    [[nodiscard]] static TextTokenizer from_file(std::filesystem::path const& path,
                                                 NamedTokens const& named);

    /// The tokens of a text, with default options: as `tokenizer.encode(text)` of transformers.
    [[nodiscard]] std::vector<Token> encode(std::string_view text) const override;
    [[nodiscard]] std::vector<Token> encode(std::string_view text,
                                            EncodeOptions const& options) const;
    /// As above, behind what `tokens` already holds.
    void encode_to(std::vector<Token>& tokens, std::string_view text,
                   EncodeOptions const& options) const;
    /// Each text for itself, on as many threads (0: one for each core). Throws the error of the
    /// first text that has one.
    [[nodiscard]] std::vector<std::vector<Token>> encode_batch(
        std::span<std::string_view const> texts) const;
    [[nodiscard]] std::vector<std::vector<Token>> encode_batch(
        std::span<std::string_view const> texts, EncodeOptions const& options,
        unsigned threads = 0) const;
    [[nodiscard]] Encoding encode_with_offsets(std::string_view text) const;
    [[nodiscard]] Encoding encode_with_offsets(std::string_view text,
                                               EncodeOptions const& options) const;
    /// How many tokens `encode` would give, without making them.
    [[nodiscard]] std::size_t count(std::string_view text) const;
    [[nodiscard]] std::size_t count(std::string_view text, EncodeOptions const& options) const;

    /// The text of tokens, special ones included. Always UTF-8: bytes that form no character become
    /// U+FFFD. Ids that are not in the vocabulary are left out.
    [[nodiscard]] std::string decode(std::span<Token const> tokens) const override;
    [[nodiscard]] std::string decode(std::span<Token const> tokens,
                                     DecodeOptions const& options) const;
    /// Decodes tokens as they come.
    [[nodiscard]] StreamDecoder stream_decoder() const;
    [[nodiscard]] StreamDecoder stream_decoder(DecodeOptions const& options) const;

    /// The id of a token as the vocabulary spells it (e.g. "Ġhello" or "<|im_end|>").
    [[nodiscard]] std::optional<Token> id_of(std::string_view token) const;
    /// How the vocabulary spells a token; none if there is no such id.
    [[nodiscard]] std::optional<std::string> text_of(Token id) const;
    /// The bytes that a token stands for in the middle of a text; may be part of a character.
    [[nodiscard]] std::optional<std::string> bytes_of(Token id) const;

    /// The number of different tokens, added ones included.
    [[nodiscard]] std::size_t vocabulary_size() const noexcept;
    /// One more than the highest id.
    [[nodiscard]] std::size_t id_limit() const noexcept;
    /// In the order of their ids.
    [[nodiscard]] std::span<AddedToken const> added_tokens() const noexcept;
    [[nodiscard]] bool is_special(Token id) const noexcept;

    /// Those of `NamedTokens` that were given and are in the vocabulary.
    [[nodiscard]] std::optional<Token> bos() const noexcept;
    [[nodiscard]] std::optional<Token> eos() const noexcept;
    [[nodiscard]] std::optional<Token> pad() const noexcept;

    class Impl;

private:
    explicit TextTokenizer(std::shared_ptr<Impl const> impl) noexcept;

    std::shared_ptr<Impl const> impl_;
};

/// Decodes tokens one after the other, and never gives part of a character.
///
/// All that `push` gives, and then `finish`, is what `decode` gives for the same tokens. For one
/// stream, and one thread at a time.
class StreamDecoder {
public:
    StreamDecoder(StreamDecoder&&) noexcept;
    StreamDecoder& operator=(StreamDecoder&&) noexcept;
    ~StreamDecoder();

    /// The text that is certain after one more token; often empty.
    [[nodiscard]] std::string push(Token token);
    [[nodiscard]] std::string push(std::span<Token const> tokens);
    /// The rest, e.g. U+FFFD for the beginning of a character. The decoder is as new afterwards.
    [[nodiscard]] std::string finish();

private:
    friend class TextTokenizer;
    class Impl;
    explicit StreamDecoder(std::unique_ptr<Impl> impl) noexcept;

    std::unique_ptr<Impl> impl_;
};

}  // namespace tinkxx::text
