#include "text/tokenizer/steps/decoders.hpp"

#include "text/errors/growth.hpp"
#include "text/unicode/aligned_text.hpp"
#include "text/unicode/utf8.hpp"

#include <array>
#include <charconv>
#include <functional>

namespace tinkxx::text {
namespace {

using Texts = std::vector<std::string>;

/// A stage that does one thing to each token.
class MapStage final : public DecodeStage {
public:
    explicit MapStage(std::function<std::string(std::string_view, bool first)> map)
        : map_{std::move(map)} {}
    void push(std::string_view token, Texts& out) override {
        out.push_back(map_(token, first_));
        first_ = false;
    }

private:
    std::function<std::string(std::string_view, bool)> map_;
    bool first_{true};
};

class ByteLevelStage final : public DecodeStage {
public:
    void push(std::string_view token, Texts& out) override {
        std::string bytes;
        for (char const *p = token.data(), *end = p + token.size(); p < end;) {
            auto const byte = byte_of_character(next_character(p));
            if (byte < 0) {
                bytes = token;
                break;
            }
            bytes += static_cast<char>(byte);
        }
        std::string text;
        collector_.push(bytes, text);
        if (!text.empty()) out.push_back(std::move(text));
    }
    void finish(Texts& out) override {
        std::string text;
        collector_.finish(text);
        if (!text.empty()) out.push_back(std::move(text));
    }

private:
    Utf8Collector collector_;
};

/// The byte that a token like `<0xE4>` stands for; none for others.
std::optional<char> fallback_byte(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
    // A sign is a digit here, since it is so where the rule comes from: "+5".
    auto const* first = token.data() + 3;
    auto const* const last = first + 2;
    if (*first == '+') ++first;
    unsigned value = 0;
    auto const [end, error] = std::from_chars(first, last, value, 16);
    if (error != std::errc{} || end != last) return std::nullopt;
    return static_cast<char>(value);
}

class ByteFallbackStage final : public DecodeStage {
public:
    void push(std::string_view token, Texts& out) override {
        if (auto const byte = fallback_byte(token)) {
            bytes_ += *byte;
            return;
        }
        finish(out);
        out.emplace_back(token);
    }
    void finish(Texts& out) override {
        // Bytes in a row are all valid, or none of them is.
        if (find_invalid_utf8(bytes_) == bytes_.size()) {
            if (!bytes_.empty()) out.push_back(bytes_);
        } else {
            out.insert(out.end(), bytes_.size(), std::string{replacement_character});
        }
        bytes_.clear();
    }

private:
    std::string bytes_;
};

class FuseStage final : public DecodeStage {
public:
    void push(std::string_view token, Texts& /*out*/) override { text_ += token; }
    void finish(Texts& out) override {
        out.push_back(std::move(text_));
        text_.clear();
    }

private:
    std::string text_;
};

/// Strips the beginning and the end of a text that comes in pieces.
class StripStage final : public DecodeStage {
public:
    StripStage(std::string_view content, std::size_t start, std::size_t stop, bool fused)
        : content_{content}, start_{start}, stop_{stop}, fused_{fused} {}

    void push(std::string_view token, Texts& out) override {
        held_ += token;
        if (!fused_) return finish(out);
        strip_start();
        // Keep back what may be the end.
        auto keep = held_.size();
        for (auto left = stop_; left > 0 && ends_with_content(keep); --left) {
            keep -= content_.size();
        }
        if (keep == 0) return;
        out.push_back(held_.substr(0, keep));
        held_.erase(0, keep);
    }

    void finish(Texts& out) override {
        strip_start();
        auto end = held_.size();
        for (auto left = stop_; left > 0 && ends_with_content(end); --left) end -= content_.size();
        held_.resize(end);
        out.push_back(std::move(held_));
        held_.clear();
        left_ = start_;
        stripping_ = true;
    }

private:
    [[nodiscard]] bool ends_with_content(std::size_t end) const {
        return std::string_view{held_}.substr(0, end).ends_with(content_);
    }
    void strip_start() {
        std::size_t begin = 0;
        while (stripping_ && left_ > 0 && held_.compare(begin, content_.size(), content_) == 0) {
            begin += content_.size();
            --left_;
        }
        held_.erase(0, begin);
        if (left_ == 0 || !held_.empty()) stripping_ = false;
    }

    std::string_view content_;
    std::size_t start_;
    std::size_t stop_;
    bool fused_;
    std::size_t left_{start_};
    bool stripping_{true};
    std::string held_;
};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    if (from.empty()) return;
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
}

/// Spaces that tokenizing English leaves behind.
std::string cleaned_up(std::string_view token) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 11> rules{{
        {" .", "."},
        {" ?", "?"},
        {" !", "!"},
        {" ,", ","},
        {" ' ", "'"},
        {" n't", "n't"},
        {" 'm", "'m"},
        {" do not", " don't"},
        {" 's", "'s"},
        {" 've", "'ve"},
        {" 're", "'re"},
    }};
    std::string text{token};
    for (auto const& [from, to] : rules) replace_all(text, from, to);
    return text;
}

class BpeStage final : public DecodeStage {
public:
    explicit BpeStage(std::string_view suffix) : suffix_{suffix} {}
    void push(std::string_view token, Texts& out) override {
        if (has_last_) give(" ", out);
        last_ = token;
        has_last_ = true;
    }
    void finish(Texts& out) override {
        if (has_last_) give("", out);
        has_last_ = false;
    }

private:
    void give(std::string_view replacement, Texts& out) {
        replace_all(last_, suffix_, replacement);
        out.push_back(std::move(last_));
    }

    std::string_view suffix_;
    std::string last_;
    bool has_last_{false};
};

class CtcStage final : public DecodeStage {
public:
    CtcStage(std::string_view pad, std::string_view delimiter, bool cleanup)
        : pad_{pad}, delimiter_{delimiter}, cleanup_{cleanup} {}
    void push(std::string_view token, Texts& out) override {
        if (last_ == token) return;
        last_ = token;
        std::string text{token};
        replace_all(text, pad_, "");
        if (cleanup_) {
            text = cleaned_up(text);
            replace_all(text, delimiter_, " ");
        }
        if (!text.empty()) out.push_back(std::move(text));
    }

private:
    std::string_view pad_;
    std::string_view delimiter_;
    bool cleanup_;
    std::optional<std::string> last_;
};

}  // namespace

void Utf8Collector::push(std::string_view bytes, std::string& out) {
    if (!held_.empty()) {
        held_ += bytes;
        bytes = held_;
    }
    while (!bytes.empty()) {
        auto const valid = find_invalid_utf8(bytes);
        out += bytes.substr(0, valid);
        bytes.remove_prefix(valid);
        if (bytes.empty()) break;
        auto const step = utf8_step(bytes);
        if (step.kind == Utf8Step::Kind::cut) break;
        out += replacement_character;
        bytes.remove_prefix(step.length);
    }
    held_ = std::string{bytes};
}

void Utf8Collector::finish(std::string& out) {
    if (!held_.empty()) out += replacement_character;
    held_.clear();
}

std::unique_ptr<DecodeStage> ByteLevelDecoder::start() const {
    return std::make_unique<ByteLevelStage>();
}

std::unique_ptr<DecodeStage> ByteFallbackDecoder::start() const {
    return std::make_unique<ByteFallbackStage>();
}

std::unique_ptr<DecodeStage> FuseDecoder::start() const { return std::make_unique<FuseStage>(); }

std::unique_ptr<DecodeStage> StripDecoder::start() const {
    return std::make_unique<StripStage>(content_, start_, stop_, fused_);
}

std::unique_ptr<DecodeStage> ReplaceDecoder::start() const {
    return std::make_unique<MapStage>([this](std::string_view token, bool) {
        std::vector<Piece> matches;
        pattern_.find_all(token, matches);
        if (auto const limit = longest_result(token.size());
            matches.size() * content_.size() > limit) {
            refuse_growth("decode", "decoder", limit);
        }
        std::string text;
        std::size_t done = 0;
        for (auto const& match : matches) {
            text += token.substr(done, match.begin - done);
            text += content_;
            done = match.end;
        }
        return text += token.substr(done);
    });
}

std::unique_ptr<DecodeStage> MetaspaceDecoder::start() const {
    return std::make_unique<MapStage>([this](std::string_view token, bool first) {
        std::string text{token};
        replace_all(text, replacement_, first && drops_first_ ? "" : " ");
        return text;
    });
}

std::unique_ptr<DecodeStage> WordPieceDecoder::start() const {
    return std::make_unique<MapStage>([this](std::string_view token, bool first) {
        std::string text{token};
        if (!first && token.starts_with(prefix_)) {
            text.erase(0, prefix_.size());
        } else if (!first) {
            text.insert(0, " ");
        }
        return cleanup_ ? cleaned_up(text) : text;
    });
}

std::unique_ptr<DecodeStage> BpeDecoder::start() const {
    return std::make_unique<BpeStage>(suffix_);
}

std::unique_ptr<DecodeStage> CtcDecoder::start() const {
    return std::make_unique<CtcStage>(pad_, delimiter_, cleanup_);
}

std::unique_ptr<DecodeStage> SpaceDecoder::start() const {
    return std::make_unique<MapStage>([](std::string_view token, bool first) {
        return first ? std::string{token} : " " + std::string{token};
    });
}

}  // namespace tinkxx::text
