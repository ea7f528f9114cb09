#pragma once

#include "text/regex/pattern.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::text {

/// A stage of decoding at work: takes one token text after the other, and hands on what is certain.
class DecodeStage {
public:
    DecodeStage() = default;
    DecodeStage(DecodeStage const&) = delete;
    DecodeStage& operator=(DecodeStage const&) = delete;
    virtual ~DecodeStage() = default;

    /// Adds what is now certain to `out`, cut into tokens as the next stage is to see them.
    virtual void push(std::string_view token, std::vector<std::string>& out) = 0;
    /// Adds the rest.
    virtual void finish(std::vector<std::string>& out) { (void)out; }
};

/// One of the decoders of a file. Any thread.
class Decoder {
public:
    Decoder() = default;
    Decoder(Decoder const&) = delete;
    Decoder& operator=(Decoder const&) = delete;
    virtual ~Decoder() = default;

    /// A new stage; must not outlive the decoder.
    [[nodiscard]] virtual std::unique_ptr<DecodeStage> start() const = 0;
};

using Decoders = std::vector<std::unique_ptr<Decoder const>>;

/// Texts of bytes, or of the characters that stand for them.
class ByteLevelDecoder final : public Decoder {
public:
    [[nodiscard]] std::unique_ptr<DecodeStage> start() const override;
};

/// `<0xE4>` and its like, side by side, make characters.
class ByteFallbackDecoder final : public Decoder {
public:
    [[nodiscard]] std::unique_ptr<DecodeStage> start() const override;
};

/// Joins all to one token, for the decoders behind it. Nothing is certain before the end then.
class FuseDecoder final : public Decoder {
public:
    [[nodiscard]] std::unique_ptr<DecodeStage> start() const override;
};

/// Removes some of a character from the ends of each token; or of all of them together, if `fused`.
class StripDecoder final : public Decoder {
public:
    StripDecoder(std::string content, std::size_t start, std::size_t stop, bool fused)
        : content_{std::move(content)}, start_{start}, stop_{stop}, fused_{fused} {}
    [[nodiscard]] std::unique_ptr<DecodeStage> start() const override;

private:
    std::string content_;
    std::size_t start_;
    std::size_t stop_;
    bool fused_;
};

class ReplaceDecoder final : public Decoder {
public:
    ReplaceDecoder(Pattern pattern, std::string content)
        : pattern_{std::move(pattern)}, content_{std::move(content)} {}
    [[nodiscard]] std::unique_ptr<DecodeStage> start() const override;

private:
    Pattern pattern_;
    std::string content_;
};

class MetaspaceDecoder final : public Decoder {
public:
    MetaspaceDecoder(std::string replacement, bool drops_first)
        : replacement_{std::move(replacement)}, drops_first_{drops_first} {}
    [[nodiscard]] std::unique_ptr<DecodeStage> start() const override;

private:
    std::string replacement_;
    bool drops_first_;
};

class WordPieceDecoder final : public Decoder {
public:
    WordPieceDecoder(std::string prefix, bool cleanup)
        : prefix_{std::move(prefix)}, cleanup_{cleanup} {}
    [[nodiscard]] std::unique_ptr<DecodeStage> start() const override;

private:
    std::string prefix_;
    bool cleanup_;
};

/// The suffix that ends a word becomes a space, except for the last.
class BpeDecoder final : public Decoder {
public:
    explicit BpeDecoder(std::string suffix) : suffix_{std::move(suffix)} {}
    [[nodiscard]] std::unique_ptr<DecodeStage> start() const override;

private:
    std::string suffix_;
};

class CtcDecoder final : public Decoder {
public:
    CtcDecoder(std::string pad, std::string delimiter, bool cleanup)
        : pad_{std::move(pad)}, delimiter_{std::move(delimiter)}, cleanup_{cleanup} {}
    [[nodiscard]] std::unique_ptr<DecodeStage> start() const override;

private:
    std::string pad_;
    std::string delimiter_;
    bool cleanup_;
};

/// What stands between tokens if a file has no decoder.
class SpaceDecoder final : public Decoder {
public:
    [[nodiscard]] std::unique_ptr<DecodeStage> start() const override;
};

/// Collects bytes, and gives the characters that are complete.
class Utf8Collector {
public:
    /// Adds to `out` what is certain after some more bytes; broken sequences become U+FFFD.
    void push(std::string_view bytes, std::string& out);
    void finish(std::string& out);

private:
    std::string held_;  // the beginning of a character
};

}  // namespace tinkxx::text
