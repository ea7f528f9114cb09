#include "text/tokenizer/run/encode_run.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace tinkxx::text {
namespace {

/// Words that are cut at once: enough to be worth it, few enough to stay in the cache.
constexpr std::size_t batch_size = 512;

}  // namespace

void EncodeRun::encode(std::string_view text, std::vector<Token>& tokens) {
    tokens_ = &tokens;
    if (!parts_.added.has(false)) return plain_part(text, 0);
    AddedParts found;
    parts_.added.split(text, false, policy_, found);
    for (auto const& part : found) {
        if (part.token != nullptr) {
            put(part.token->token.id);
        } else {
            plain_part(text.substr(part.begin, part.end - part.begin), part.begin);
        }
    }
}

std::size_t EncodeRun::count(std::string_view text) {
    counting_ = true;
    scratch_.tokens.clear();
    encode(text, scratch_.tokens);
    drain();
    return counted_;
}

void EncodeRun::put(Token token) { tokens_->push_back(token); }

void EncodeRun::drain() {
    if (!counting_) return;
    counted_ += tokens_->size();
    tokens_->clear();
}

void EncodeRun::plain_part(std::string_view text, std::size_t shift) {
    if (text.empty()) return;
    if (parts_.needs_ranges) return placed_part(text, shift, nullptr);
    AlignedText changed;
    auto is_changed = false;
    for (auto const& normalizer : parts_.normalizers) {
        if (normalizer->keeps(is_changed ? changed.text() : text)) continue;
        if (!is_changed) changed.assign(text, shift, false);
        is_changed = true;
        normalizer->apply(changed);
    }
    auto const now = is_changed ? changed.text() : text;
    if (!parts_.added.has(true)) return plain_words(now, shift);
    AddedParts found;
    parts_.added.split(now, true, policy_, found);
    for (auto const& part : found) {
        if (part.token != nullptr) {
            put(part.token->token.id);
        } else {
            plain_words(now.substr(part.begin, part.end - part.begin), shift + part.begin);
        }
    }
}

void EncodeRun::plain_words(std::string_view text, std::size_t shift) {
    if (text.empty()) return;
    auto const& model = *parts_.model;
    if (parts_.pattern) {
        std::array<Piece, batch_size> batch;
        ScanState state;
        while (auto const count = scan(*parts_.pattern, text, state, batch)) {
            for (auto const& piece : std::span{batch}.first(count)) {
                model.encode(text.substr(piece.begin, piece.end - piece.begin), scratch_, *tokens_);
            }
            drain();
        }
        return;
    }
    if (parts_.pre_tokenizers.empty()) return model.encode(text, scratch_, *tokens_);
    PreTokenized state{.shift = shift};
    state.text.assign(text, shift, false);
    placed_words(state, nullptr);
}

void EncodeRun::encode_placed(std::string_view text, std::vector<Placed>& placed) {
    AddedParts found;
    parts_.added.split(text, false, policy_, found);
    for (auto const& part : found) {
        auto const own = text.substr(part.begin, part.end - part.begin);
        if (part.token == nullptr) {
            placed_part(own, part.begin, &placed);
        } else {
            placed.push_back({.id = part.token->token.id,
                              .range = {.begin = part.begin, .end = part.end},
                              .outer = trims() ? outer_space(own) : OuterSpace{}});
        }
    }
}

void EncodeRun::placed_part(std::string_view text, std::size_t shift, std::vector<Placed>* placed) {
    if (text.empty()) return;
    AlignedText all;
    all.assign(text, shift, true);
    for (auto const& normalizer : parts_.normalizers) {
        if (!normalizer->keeps(all.text())) normalizer->apply(all);
    }
    AddedParts found;
    parts_.added.split(all.text(), true, policy_, found);
    for (auto const& part : found) {
        if (part.token == nullptr) {
            PreTokenized state{.shift = shift + part.begin};
            state.text.append(all, part.begin, part.end);
            placed_words(state, placed);
        } else if (placed == nullptr) {
            put(part.token->token.id);
        } else {
            auto const own = all.text().substr(part.begin, part.end - part.begin);
            placed->push_back({.id = part.token->token.id,
                               .range = original_range(all, part.begin, part.end),
                               .outer = trims() ? outer_space(own) : OuterSpace{}});
        }
    }
}

void EncodeRun::placed_words(PreTokenized& state, std::vector<Placed>* placed) {
    state.pieces.clear();
    if (!state.text.text().empty()) {
        state.pieces.push_back({.begin = 0, .end = state.text.text().size()});
    }
    for (auto const& step : parts_.pre_tokenizers) step->apply(state);
    put_pieces(state, placed);
}

void EncodeRun::put_pieces(PreTokenized const& state, std::vector<Placed>* placed) {
    auto const text = state.text.text();
    for (auto const& piece : state.pieces) {
        auto const word = text.substr(piece.begin, piece.end - piece.begin);
        if (placed == nullptr) {
            parts_.model->encode(word, scratch_, *tokens_);
            drain();
            continue;
        }
        auto& spans = scratch_.spans;
        spans.clear();
        parts_.model->encode_spans(word, scratch_, spans);
        for (auto const& span : spans) {
            placed->push_back(
                {.id = span.id,
                 .range = original_range(state.text, piece.begin + span.begin,
                                         std::min(piece.begin + span.end, text.size())),
                 .outer = trims() ? outer_of(span.id) : OuterSpace{}});
        }
    }
}

bool EncodeRun::trims() const {
    return std::ranges::any_of(
        parts_.post_steps, [](PostStep const& step) { return step.kind == PostStep::Kind::trim; });
}

OuterSpace EncodeRun::outer_of(Token token) const {
    auto const id = static_cast<std::uint32_t>(token);
    if (auto const bytes = parts_.model->bytes(id)) {
        // Of the characters that stand for bytes, only that of a space is one.
        auto const leading = std::min(bytes->find_first_not_of(' '), bytes->size());
        auto const last = bytes->find_last_not_of(' ');
        auto const trailing =
            last == std::string_view::npos ? bytes->size() : bytes->size() - 1 - last;
        return {.leading = leading, .trailing = trailing};
    }
    return outer_space(parts_.model->text(id).value_or(""));
}

}  // namespace tinkxx::text
