#pragma once

#include "text/tokenizer/load/parts.hpp"
#include "text/tokenizer/models/scratch.hpp"

#include <tinkxx/text/tokenizer.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace tinkxx::text {

class TextTokenizer::Impl {
public:
    Impl(Parts parts, NamedTokens const& named);

    void encode_to(std::vector<Token>& tokens, std::string_view text,
                   EncodeOptions const& options) const;
    [[nodiscard]] Encoding encode_with_offsets(std::string_view text,
                                               EncodeOptions const& options) const;
    [[nodiscard]] std::size_t count(std::string_view text, EncodeOptions const& options) const;

    [[nodiscard]] std::optional<Token> id_of(std::string_view text) const;
    [[nodiscard]] std::optional<std::string> text_of(Token id) const;
    /// What decoding starts from; none if there is no such token, or if it is to be left out.
    [[nodiscard]] std::optional<std::string> decoded_text(Token id, bool skip_special) const;
    /// As bytes, if decoding is joining them; false as above.
    bool append_bytes(Token id, bool skip_special, std::string& bytes) const;

    [[nodiscard]] Parts const& parts() const noexcept { return parts_; }
    [[nodiscard]] std::vector<AddedToken> const& added() const noexcept { return added_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::size_t limit() const noexcept { return limit_; }
    [[nodiscard]] bool is_special(Token id) const noexcept;

    std::optional<Token> bos;
    std::optional<Token> eos;
    std::optional<Token> pad;

private:
    class Lease;

    Parts parts_;
    std::vector<AddedToken> added_;
    std::vector<std::string> added_bytes_;  // what each decodes to, if that is bytes
    std::vector<bool> skipped_;             // whether `skip_special` leaves it out
    std::size_t size_{0};
    std::size_t limit_{0};
    // Threads borrow one each while they encode.
    mutable std::mutex mutex_;
    mutable std::vector<std::unique_ptr<Scratch>> idle_;
};

}  // namespace tinkxx::text
