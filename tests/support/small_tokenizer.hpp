#pragma once

#include <tinkxx/text/renderer.hpp>

#include <cstddef>
#include <istream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::test {

/// A byte-level BPE with a few merges and the special tokens of some family: small enough to be
/// read, and yet one where it matters at which places a text is cut before it is encoded.
///
/// Bytes are their own ids; merges follow from 256 on, and added tokens behind those.
class SmallTokenizer final : public text::RenderTokenizer {
public:
    struct Added {
        std::string text{};
        bool special{true};
    };

    SmallTokenizer(std::vector<std::pair<std::string, std::string>> const& merges,
                   std::vector<Added> added, std::optional<std::string> bos,
                   std::optional<std::string> eos);

    /// Lines of words: `merge HEX HEX`, `special TEXT`, `added TEXT`, `bos TEXT`, `eos TEXT`.
    [[nodiscard]] static std::shared_ptr<SmallTokenizer const> read(std::istream& in);

    [[nodiscard]] std::vector<Token> encode(std::string_view text,
                                            Specials specials) const override;
    [[nodiscard]] std::string decode(std::span<Token const> tokens) const override;
    [[nodiscard]] std::optional<Token> find(std::string_view token) const override;
    [[nodiscard]] std::optional<std::string> bos() const override { return bos_; }
    [[nodiscard]] std::optional<Token> eos() const override {
        return eos_ ? find(*eos_) : std::nullopt;
    }
    /// One more than the highest id.
    [[nodiscard]] std::size_t size() const noexcept { return first_added_ + added_.size(); }

private:
    struct Found {
        std::size_t at{0};
        std::size_t index{0};
    };
    [[nodiscard]] std::optional<Found> next_added(std::string_view text, std::size_t from) const;
    void append_bytes(std::vector<Token>& out, std::string_view text) const;

    std::vector<std::pair<Token, Token>> merges_{};
    std::vector<std::string> texts_{};  // of bytes and merges
    std::size_t first_added_{256};
    std::vector<Added> added_{};
    std::optional<std::string> bos_{};
    std::optional<std::string> eos_{};
};

/// Valid UTF-8: what is none becomes U+FFFD, once for each beginning of a character.
[[nodiscard]] std::string lossy_utf8(std::string_view bytes);

}  // namespace tinkxx::test
