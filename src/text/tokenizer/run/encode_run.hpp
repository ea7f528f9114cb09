#pragma once

#include "text/tokenizer/load/parts.hpp"
#include "text/tokenizer/models/scratch.hpp"

#include <tinkxx/text/tokenizer.hpp>

#include <cstddef>
#include <string_view>
#include <vector>

namespace tinkxx::text {

/// Encodes one text, without what is put around it in the end.
class EncodeRun {
public:
    EncodeRun(Parts const& parts, SpecialText policy, Scratch& scratch)
        : parts_{parts}, policy_{policy}, scratch_{scratch} {}

    void encode(std::string_view text, std::vector<Token>& tokens);
    [[nodiscard]] std::size_t count(std::string_view text);

    /// A token with its range, and the white space that it is spelled with.
    struct Placed {
        Token id{};
        TextRange range{};
        OuterSpace outer{};
    };
    void encode_placed(std::string_view text, std::vector<Placed>& placed);

private:
    using AddedParts = std::vector<AddedTokens::Part>;

    // Without places.
    void plain_part(std::string_view text, std::size_t shift);
    void plain_words(std::string_view text, std::size_t shift);
    void put(Token token);
    void drain();
    // With places.
    void placed_part(std::string_view text, std::size_t shift, std::vector<Placed>* placed);
    void placed_words(PreTokenized& state, std::vector<Placed>* placed);
    void put_pieces(PreTokenized const& state, std::vector<Placed>* placed);
    [[nodiscard]] OuterSpace outer_of(Token token) const;
    [[nodiscard]] bool trims() const;

    Parts const& parts_;
    SpecialText policy_;
    Scratch& scratch_;
    std::vector<Token>* tokens_{nullptr};
    bool counting_{false};
    std::size_t counted_{0};
};

}  // namespace tinkxx::text
