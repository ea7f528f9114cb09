// A response as it comes: text and thinking in pieces that never split a character or a tag.
#include <tinkxx/text/renderer.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace tinkxx::text {

namespace {

// Holds tokens back until they end with a whole character.
class CharacterBuffer {
public:
    explicit CharacterBuffer(RenderTokenizer const& tokenizer) : tokenizer_{tokenizer} {}

    std::optional<std::string> add(Token token) {
        pending_.push_back(token);
        if (auto text = whole(pending_.size())) {
            pending_.clear();
            return text;
        }
        auto const most = std::min(pending_.size() - 1, longest_tail);
        for (std::size_t left = 1; left <= most; ++left) {
            if (auto text = whole(pending_.size() - left)) {
                pending_.erase(pending_.begin(),
                               pending_.end() - static_cast<std::ptrdiff_t>(left));
                return text;
            }
        }
        return std::nullopt;
    }

    std::string flush() {
        if (pending_.empty()) return {};
        auto text = tokenizer_.decode(pending_);
        pending_.clear();
        return text;
    }

private:
    static constexpr std::size_t longest_tail = 8;

    [[nodiscard]] std::optional<std::string> whole(std::size_t tokens) const {
        auto text = tokenizer_.decode(std::span{pending_}.first(tokens));
        if (text.ends_with("\xef\xbf\xbd")) return std::nullopt;
        return text;
    }

    RenderTokenizer const& tokenizer_;
    std::vector<Token> pending_{};
};

// How much of the end of a text may be the beginning of a tag.
std::size_t tag_begun(std::string_view text, std::string_view tag) {
    for (auto size = std::min(text.size(), tag.size() - 1); size > 0; --size) {
        if (text.ends_with(tag.substr(0, size))) return size;
    }
    return 0;
}

class PieceWriter {
public:
    using Take = std::function<void(MessageDelta const&)>;

    explicit PieceWriter(Take const& take) : take_{take} {}

    void add(std::string_view text) {
        header();
        text_ += text;
        while (at_ < text_.size() && step()) {
        }
        text_.erase(0, at_);
        at_ = 0;
    }

    // What comes last is not searched for tags: it ends in the midst of a character.
    void finish(std::string_view rest) {
        header();
        text_ += rest;
        give(text_);
    }

private:
    void header() {
        if (!std::exchange(begun_, true)) take_(StreamingHeader{"assistant"});
    }

    void give(std::string_view piece) {
        if (piece.empty()) return;
        if (thinking_) {
            take_(StreamingThinking{std::string{piece}, index_});
        } else {
            take_(StreamingText{std::string{piece}, index_});
        }
    }

    // Gives what comes before the next tag; false if there is none yet.
    bool step() {
        std::string_view const tag = thinking_ ? "</think>" : "<think>";
        auto const rest = std::string_view{text_}.substr(at_);
        auto const found = rest.find(tag);
        if (found == std::string_view::npos) {
            auto const safe = rest.size() - tag_begun(rest, tag);
            give(rest.substr(0, safe));
            at_ += safe;
            return false;
        }
        give(rest.substr(0, found));
        thinking_ = !thinking_;
        ++index_;
        at_ += found + tag.size();
        return true;
    }

    Take const& take_;
    std::string text_{};
    std::size_t at_{0};
    std::size_t index_{0};
    bool begun_{false};
    bool thinking_{false};
};

}  // namespace

void Renderer::parse_response_streaming(
    std::span<Token const> response, std::function<void(MessageDelta const&)> const& take) const {
    auto const tokens = normalize_response(response);
    auto const end = end_of_message(tokens);
    CharacterBuffer characters{*tokenizer_};
    PieceWriter pieces{take};
    std::size_t used = 0;
    for (auto const token : tokens) {
        ++used;
        if (token == end) break;
        if (auto const text = characters.add(token)) pieces.add(*text);
    }
    pieces.finish(characters.flush());
    take(parse_whole(std::span{tokens}.first(used)).message);
}

}  // namespace tinkxx::text
