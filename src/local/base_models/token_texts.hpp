#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/text/tokenizer.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::local {

/// What the tokens of a model stand for: found by its tokenizer once, since each sampled token is
/// compared with the stop texts. Immutable; any thread.
class TokenTexts {
public:
    /// Of the `tokenizer.json` in a folder; null if there is none.
    [[nodiscard]] static Result<std::shared_ptr<TokenTexts const>> of_folder(
        std::filesystem::path const& folder);

    explicit TokenTexts(text::TextTokenizer tokenizer);

    /// The bytes of a token, which may be part of a character; none for an id without a token.
    [[nodiscard]] std::string_view bytes(std::int32_t token) const noexcept;
    [[nodiscard]] text::TextTokenizer const& tokenizer() const noexcept { return tokenizer_; }

private:
    text::TextTokenizer tokenizer_;
    std::string all_{};
    /// Where the bytes of each token begin in `all_`, and one entry for the end.
    std::vector<std::uint32_t> begins_{0};
};

}  // namespace tinkxx::local
