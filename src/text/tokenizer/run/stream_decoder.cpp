#include <tinkxx/text/tokenizer.hpp>

#include "text/errors/growth.hpp"
#include "text/tokenizer/run/text_tokenizer_impl.hpp"
#include "text/tokenizer/steps/decoders.hpp"
#include "text/unicode/utf8.hpp"

#include <charconv>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::text {

class StreamDecoder::Impl {
public:
    Impl(std::shared_ptr<TextTokenizer::Impl const> tokenizer, DecodeOptions options)
        : tokenizer_{std::move(tokenizer)}, options_{options} {
        start();
    }

    void push(Token token, std::string& out) {
        if (bytes_only()) {
            bytes_.clear();
            tokenizer_->append_bytes(token, options_.skip_special, bytes_);
            collector_.push(bytes_, out);
            return;
        }
        auto text = tokenizer_->decoded_text(token, options_.skip_special);
        if (!text) return;
        taken_ += text->size();
        std::vector<std::string> texts;
        texts.push_back(std::move(*text));
        pass(std::move(texts), 0, out);
    }

    void finish(std::string& out) {
        if (bytes_only()) {
            collector_.finish(out);
            return;
        }
        for (std::size_t i = 0; i < stages_.size(); ++i) {
            std::vector<std::string> rest;
            stages_[i]->finish(rest);
            pass(std::move(rest), i + 1, out);
        }
        start();
    }

private:
    [[nodiscard]] bool bytes_only() const noexcept { return tokenizer_->parts().decodes_bytes; }

    void start() {
        stages_.clear();
        taken_ = 0;
        made_.assign(tokenizer_->parts().decoders.size(), 0);
        for (auto const& decoder : tokenizer_->parts().decoders)
            stages_.push_back(decoder->start());
    }

    /// Sends texts through the stages from one on.
    void pass(std::vector<std::string> texts, std::size_t stage, std::string& out) {
        for (; stage < stages_.size(); ++stage) {
            std::vector<std::string> next;
            for (auto const& text : texts) stages_[stage]->push(text, next);
            texts = std::move(next);
            for (auto const& text : texts) made_[stage] += text.size();
            if (auto const limit = longest_result(taken_); made_[stage] > limit) {
                refuse_growth("decode", "decoder", limit);
            }
        }
        for (auto const& text : texts) out += text;
    }

    std::shared_ptr<TextTokenizer::Impl const> tokenizer_;
    DecodeOptions options_;
    std::vector<std::unique_ptr<DecodeStage>> stages_;
    std::size_t taken_{0};           // bytes of the tokens so far
    std::vector<std::size_t> made_;  // bytes that each stage has made of them
    Utf8Collector collector_;
    std::string bytes_;
};

StreamDecoder::StreamDecoder(std::unique_ptr<Impl> impl) noexcept : impl_{std::move(impl)} {}
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&&) noexcept = default;
StreamDecoder::~StreamDecoder() = default;

std::string StreamDecoder::push(Token token) {
    std::string out;
    impl_->push(token, out);
    return out;
}

std::string StreamDecoder::push(std::span<Token const> tokens) {
    std::string out;
    for (auto const token : tokens) impl_->push(token, out);
    return out;
}

std::string StreamDecoder::finish() {
    std::string out;
    impl_->finish(out);
    return out;
}

StreamDecoder TextTokenizer::stream_decoder(DecodeOptions const& options) const {
    return StreamDecoder{std::make_unique<StreamDecoder::Impl>(impl_, options)};
}

std::optional<std::string> TextTokenizer::bytes_of(Token id) const {
    if (impl_->parts().decodes_bytes) {
        std::string bytes;
        if (!impl_->append_bytes(id, false, bytes)) return std::nullopt;
        return bytes;
    }
    auto const text = impl_->decoded_text(id, false);
    if (!text) return std::nullopt;
    // What it adds behind itself: what is special about the beginning of a text is over then.
    std::vector<Token> const twice{id, id};
    auto const once = decode(std::span{twice}.first(1));
    auto both = decode(twice);
    if (!both.starts_with(once)) return both;
    both.erase(0, once.size());
    // A part of a character is not to be had by decoding it alone.
    if (both != replacement_character || text->size() != 6 || !text->starts_with("<0x"))
        return both;
    unsigned byte = 0;
    std::from_chars(text->data() + 3, text->data() + 5, byte, 16);
    return std::string(1, static_cast<char>(byte));
}

}  // namespace tinkxx::text
