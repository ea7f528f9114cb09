#include "wire/values/model_input.hpp"

#include <tinkxx/tokenizer.hpp>

#include "base/common/invalid.hpp"
#include "wire/json/base64.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace tinkxx {

ModelInput ModelInput::from_tokens(std::vector<Token> tokens) {
    ModelInput input;
    if (!tokens.empty()) input.chunks.emplace_back(EncodedTextChunk{std::move(tokens)});
    return input;
}

ModelInput ModelInput::from_text(std::string_view text, Tokenizer const& tokenizer) {
    return from_tokens(tokenizer.encode(text));
}

std::vector<Token> ModelInput::to_tokens() const {
    std::vector<Token> out;
    for (std::size_t i = 0; i < chunks.size(); ++i) {
        auto const* text = std::get_if<EncodedTextChunk>(&chunks[i]);
        if (text == nullptr) {
            base::refuse("to_tokens", "chunks/" + std::to_string(i), "",
                         "chunk " + std::to_string(i) + " of " + std::to_string(chunks.size()) +
                             " is no text; only text has token ids");
        }
        out.insert(out.end(), text->tokens.begin(), text->tokens.end());
    }
    return out;
}

std::int64_t ModelInput::length() const { return wire::token_count(*this).value(); }

ModelInput ModelInput::append(ModelInputChunk chunk) const {
    auto out = *this;
    out.chunks.push_back(std::move(chunk));
    return out;
}

ModelInput ModelInput::append_int(Token token) const {
    auto out = *this;
    if (!out.chunks.empty()) {
        if (auto* text = std::get_if<EncodedTextChunk>(&out.chunks.back())) {
            text->tokens.push_back(token);
            return out;
        }
    }
    out.chunks.emplace_back(EncodedTextChunk{{token}});
    return out;
}

std::int64_t length(ModelInputChunk const& chunk) { return wire::token_count(chunk).value(); }

}  // namespace tinkxx

namespace tinkxx::wire {

namespace {

ErrorDetails length_error(std::string_view field, std::string_view value, std::string_view why) {
    return base::invalid("length", std::string{field}, std::string{value}, why);
}

Result<std::int64_t> expected(std::optional<std::int64_t> tokens) {
    if (!tokens) {
        return length_error("expected_tokens", "",
                            "an image does not say how many tokens it makes; set expected_tokens");
    }
    if (*tokens < 0) {
        return length_error("expected_tokens", std::to_string(*tokens),
                            "expected_tokens is " + std::to_string(*tokens) +
                                "; a number of tokens is not negative");
    }
    return *tokens;
}

// The header of a tensor container: [254] dtype rank dimension…, the last two as varints.
class ContainerHeader {
public:
    explicit ContainerHeader(std::string_view bytes) : left_{bytes} {}

    Result<std::int64_t> first_dimension() {
        if (left_.empty()) return broken("it is empty");
        if (static_cast<unsigned char>(left_.front()) == 254) left_.remove_prefix(1);
        if (left_.empty()) return broken("its header is cut off");
        auto const dtype = static_cast<unsigned char>(left_.front());
        left_.remove_prefix(1);
        if (dtype > 7) return broken("its element type " + std::to_string(dtype) + " is unknown");
        auto const rank = varint();
        if (!rank) return rank.error();
        if (*rank == 0) return broken("its tensor has no dimension");
        auto const first = varint();
        if (!first) return first.error();
        for (std::uint64_t i = 1; i < *rank; ++i) {
            if (auto const other = varint(); !other) return other.error();
        }
        if (*first > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
            return broken("its first dimension " + std::to_string(*first) + " is too large");
        }
        return static_cast<std::int64_t>(*first);
    }

private:
    static ErrorDetails broken(std::string const& why) {
        return length_error("dmel", "", "an audio chunk is no tensor container: " + why);
    }

    Result<std::uint64_t> varint() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            if (left_.empty()) return broken("its header is cut off");
            auto const byte = std::uint64_t{static_cast<unsigned char>(left_.front())};
            left_.remove_prefix(1);
            if (shift == 63 && byte > 1) break;
            value |= (byte & 0x7fU) << shift;
            if (byte < 0x80) return value;
        }
        return broken("its header has a number of more than 64 bits");
    }

    std::string_view left_;
};

struct WriteChunk {
    JsonOut& json;

    void operator()(EncodedTextChunk const& chunk) const {
        json.key("tokens");
        json.list(chunk.tokens);
        json.member("type", "encoded_text");
    }
    void operator()(ImageChunk const& chunk) const {
        json.key("data");
        json.bytes(chunk.data);
        json.member("format", to_string(chunk.format));
        json.member("expected_tokens", chunk.expected_tokens);
        json.member("type", "image");
    }
    void operator()(ImageAssetPointerChunk const& chunk) const {
        json.member("format", to_string(chunk.format));
        json.member("location", chunk.location);
        json.member("expected_tokens", chunk.expected_tokens);
        json.member("type", "image_asset_pointer");
    }
    void operator()(DmelChunk const& chunk) const {
        json.key("dmel");
        json.bytes(chunk.dmel);
        json.member("type", "dmel");
    }
};

}  // namespace

std::string_view to_string(ImageFormat format) noexcept {
    return format == ImageFormat::jpeg ? "jpeg" : "png";
}

Result<std::int64_t> token_count(ModelInputChunk const& chunk) {
    struct Count {
        Result<std::int64_t> operator()(EncodedTextChunk const& text) const {
            return static_cast<std::int64_t>(text.tokens.size());
        }
        Result<std::int64_t> operator()(ImageChunk const& image) const {
            return expected(image.expected_tokens);
        }
        Result<std::int64_t> operator()(ImageAssetPointerChunk const& image) const {
            return expected(image.expected_tokens);
        }
        Result<std::int64_t> operator()(DmelChunk const& audio) const {
            return ContainerHeader{audio.dmel}.first_dimension();
        }
    };
    return std::visit(Count{}, chunk);
}

Result<std::int64_t> token_count(ModelInput const& input) {
    std::int64_t total = 0;
    for (auto const& chunk : input.chunks) {
        auto tokens = token_count(chunk);
        if (!tokens) return tokens;
        if (*tokens > std::numeric_limits<std::int64_t>::max() - total) {
            return length_error("chunks", "", "the chunks have more tokens than can be counted");
        }
        total += *tokens;
    }
    return total;
}

std::optional<std::int64_t> known_length(ModelInput const& input) {
    auto const tokens = token_count(input);
    return tokens ? std::optional{*tokens} : std::nullopt;
}

void write(JsonOut& json, std::span<ModelInputChunk const> chunks) {
    json.open_object();
    json.key("chunks");
    json.open_array();
    for (auto const& chunk : chunks) {
        json.open_object();
        std::visit(WriteChunk{json}, chunk);
        json.close_object();
    }
    json.close_array();
    json.close_object();
}

std::int64_t estimate_bytes(ModelInput const& input, std::int64_t per_token) noexcept {
    struct Estimate {
        std::int64_t per_token;

        std::int64_t operator()(EncodedTextChunk const& chunk) const {
            return static_cast<std::int64_t>(chunk.tokens.size()) * per_token;
        }
        std::int64_t operator()(ImageChunk const& chunk) const {
            return static_cast<std::int64_t>(chunk.data.size());
        }
        std::int64_t operator()(ImageAssetPointerChunk const& chunk) const {
            // Its length in characters, as the official SDK counts.
            return std::ranges::count_if(chunk.location, [](char c) {
                return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
            });
        }
        std::int64_t operator()(DmelChunk const& chunk) const {
            return static_cast<std::int64_t>(chunk.dmel.size());
        }
    };
    std::int64_t total = 0;
    for (auto const& chunk : input.chunks) total += std::visit(Estimate{per_token}, chunk);
    return total;
}

}  // namespace tinkxx::wire
