#include <tinkxx/text/tokenizer.hpp>

#include "text/errors/refuse.hpp"
#include "text/tokenizer/run/encode_run.hpp"
#include "text/tokenizer/run/text_tokenizer_impl.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <fstream>
#include <thread>
#include <utility>

namespace tinkxx::text {
namespace {

/// A text in which broken sequences are replaced, and where they were.
class Repaired {
public:
    Repaired(std::string_view text, InvalidUtf8 policy) : text_{text} {
        auto const broken = find_invalid_utf8(text);
        if (broken == text.size()) return;
        if (policy == InvalidUtf8::refuse) {
            refuse("encode: the text is not UTF-8 at byte " + std::to_string(broken) +
                       "; correct it, or choose InvalidUtf8::replace",
                   "text");
        }
        replace(text);
    }
    Repaired(Repaired const&) = delete;
    Repaired& operator=(Repaired const&) = delete;

    [[nodiscard]] std::string_view text() const noexcept { return text_; }

    /// Where in the text as it was given a place is.
    [[nodiscard]] std::size_t original(std::size_t place) const noexcept {
        auto const after = std::ranges::upper_bound(breaks_, place, {}, &Break::end);
        if (after == breaks_.begin()) return place;
        auto const& last = *std::prev(after);
        return last.original_end + (place - last.end);
    }

private:
    struct Break {
        std::size_t end;           // behind the replacement
        std::size_t original_end;  // behind what was replaced
    };

    void replace(std::string_view text) {
        for (std::size_t at = 0; at < text.size();) {
            auto const valid = find_invalid_utf8(text.substr(at));
            copy_ += text.substr(at, valid);
            at += valid;
            if (at == text.size()) break;
            at += utf8_step(text.substr(at)).length;
            copy_ += replacement_character;
            breaks_.push_back({.end = copy_.size(), .original_end = at});
        }
        text_ = copy_;
    }

    std::string_view text_;
    std::string copy_;
    std::vector<Break> breaks_;
};

/// Applies the steps at the end to tokens without ranges.
void surround(std::vector<Token>& tokens, std::size_t begin, PostSteps const& steps) {
    for (auto const& step : steps) {
        if (step.kind != PostStep::Kind::surround) continue;
        std::vector<Token> const inner{tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                                       tokens.end()};
        tokens.resize(begin);
        for (std::size_t i = 0; i < step.around.size(); ++i) {
            if (i > 0) tokens.insert(tokens.end(), inner.begin(), inner.end());
            tokens.insert(tokens.end(), step.around[i].begin(), step.around[i].end());
        }
    }
}

/// Whether putting tokens around a text is adding some before it, and some behind.
bool is_simple(PostSteps const& steps) {
    return std::ranges::all_of(steps, [](PostStep const& step) {
        return step.kind == PostStep::Kind::trim || step.around.size() == 2;
    });
}

using Placed = EncodeRun::Placed;

void finish_placed(std::vector<Placed>& placed, std::string_view text, PostSteps const& steps,
                   bool add_special) {
    for (auto const& step : steps) {
        if (step.kind == PostStep::Kind::trim) {
            for (std::size_t i = 0; i < placed.size(); ++i) {
                trim_range(placed[i].range, text, placed[i].outer, i == 0, step.add_prefix_space);
            }
            continue;
        }
        std::vector<Placed> result;
        for (std::size_t i = 0; i < step.around.size(); ++i) {
            if (i > 0) result.insert(result.end(), placed.begin(), placed.end());
            if (!add_special) continue;
            for (auto const token : step.around[i]) result.push_back({.id = token});
        }
        placed = std::move(result);
    }
}

/// The bytes of an added token's text, as a byte-level decoder takes it.
std::string bytes_of_text(std::string const& text) {
    std::string bytes;
    for (char const *p = text.data(), *end = p + text.size(); p < end;) {
        auto const byte = byte_of_character(next_character(p));
        if (byte < 0) return text;
        bytes += static_cast<char>(byte);
    }
    return bytes;
}

}  // namespace

/// Borrows what a thread needs for one text.
class TextTokenizer::Impl::Lease {
public:
    explicit Lease(Impl const& impl) : impl_{impl} {
        std::scoped_lock const lock{impl.mutex_};
        if (!impl.idle_.empty()) {
            scratch_ = std::move(impl.idle_.back());
            impl.idle_.pop_back();
        }
    }
    Lease(Lease const&) = delete;
    Lease& operator=(Lease const&) = delete;
    ~Lease() {
        if (!scratch_) return;
        std::scoped_lock const lock{impl_.mutex_};
        // No place is no reason to fail: it is made anew next time.
        if (impl_.idle_.size() < impl_.idle_.capacity()) impl_.idle_.push_back(std::move(scratch_));
    }

    [[nodiscard]] Scratch& get() {
        if (!scratch_) scratch_ = std::make_unique<Scratch>();
        return *scratch_;
    }

private:
    Impl const& impl_;
    std::unique_ptr<Scratch> scratch_;
};

TextTokenizer::Impl::Impl(Parts parts, NamedTokens const& named) : parts_{std::move(parts)} {
    auto const& model = *parts_.model;
    size_ = model.size();
    limit_ = model.limit();
    std::unordered_set<std::string> specials;
    for (auto const& entry : parts_.added.entries()) {
        if (entry.token.special) specials.insert(entry.token.text);
    }
    for (auto const& entry : parts_.added.entries()) {
        added_.push_back(entry.token);
        added_bytes_.push_back(parts_.added_are_bytes ? entry.normalized
                                                      : bytes_of_text(entry.normalized));
        skipped_.push_back(specials.contains(entry.normalized));
        auto const id = static_cast<std::uint32_t>(entry.token.id);
        if (!model.text(id)) ++size_;
        limit_ = std::max(limit_, static_cast<std::size_t>(id) + 1);
    }
    auto const find_named = [this](std::string const& text) {
        return text.empty() ? std::nullopt : id_of(text);
    };
    bos = find_named(named.bos);
    eos = find_named(named.eos);
    pad = find_named(named.pad);
    idle_.reserve(std::max(1U, std::thread::hardware_concurrency()));
}

void TextTokenizer::Impl::encode_to(std::vector<Token>& tokens, std::string_view text,
                                    EncodeOptions const& options) const {
    Repaired const repaired{text, options.invalid_utf8};
    Lease lease{*this};
    EncodeRun run{parts_, options.special_text, lease.get()};
    auto const begin = tokens.size();
    tokens.reserve(begin + text.size() / 4 + 8);
    auto const simple = is_simple(parts_.post_steps);
    if (options.add_special && simple) {
        // The last step's tokens are the outermost.
        for (auto step = parts_.post_steps.rbegin(); step != parts_.post_steps.rend(); ++step) {
            if (step->kind == PostStep::Kind::trim) continue;
            tokens.insert(tokens.end(), step->around[0].begin(), step->around[0].end());
        }
    }
    run.encode(repaired.text(), tokens);
    if (options.add_special && simple) {
        for (auto const& step : parts_.post_steps) {
            if (step.kind == PostStep::Kind::trim) continue;
            tokens.insert(tokens.end(), step.around[1].begin(), step.around[1].end());
        }
    } else if (!simple) {
        auto steps = parts_.post_steps;
        if (!options.add_special) {
            for (auto& step : steps) {
                for (auto& list : step.around) list.clear();
            }
        }
        surround(tokens, begin, steps);
    }
}

Encoding TextTokenizer::Impl::encode_with_offsets(std::string_view text,
                                                  EncodeOptions const& options) const {
    Repaired const repaired{text, options.invalid_utf8};
    Lease lease{*this};
    std::vector<Placed> placed;
    EncodeRun{parts_, options.special_text, lease.get()}.encode_placed(repaired.text(), placed);
    finish_placed(placed, repaired.text(), parts_.post_steps, options.add_special);
    Encoding encoding;
    encoding.tokens.reserve(placed.size());
    encoding.ranges.reserve(placed.size());
    for (auto const& one : placed) {
        encoding.tokens.push_back(one.id);
        encoding.ranges.push_back(
            {.begin = repaired.original(one.range.begin), .end = repaired.original(one.range.end)});
    }
    return encoding;
}

std::size_t TextTokenizer::Impl::count(std::string_view text, EncodeOptions const& options) const {
    Repaired const repaired{text, options.invalid_utf8};
    Lease lease{*this};
    auto counted = EncodeRun{parts_, options.special_text, lease.get()}.count(repaired.text());
    for (auto const& step : parts_.post_steps) {
        if (step.kind == PostStep::Kind::trim) continue;
        counted *= step.around.size() - 1;
        if (!options.add_special) continue;
        for (auto const& list : step.around) counted += list.size();
    }
    return counted;
}

std::optional<Token> TextTokenizer::Impl::id_of(std::string_view text) const {
    for (auto const& token : added_) {
        if (token.text == text) return token.id;
    }
    auto const id = parts_.model->find(text);
    if (id == no_token) return std::nullopt;
    return static_cast<Token>(id);
}

std::optional<std::string> TextTokenizer::Impl::text_of(Token id) const {
    if (id < 0) return std::nullopt;
    if (auto const* const entry = parts_.added.find(static_cast<std::uint32_t>(id))) {
        return entry->token.text;
    }
    return parts_.model->text(static_cast<std::uint32_t>(id));
}

std::optional<std::string> TextTokenizer::Impl::decoded_text(Token id, bool skip_special) const {
    if (id < 0) return std::nullopt;
    auto const* const entry = parts_.added.find(static_cast<std::uint32_t>(id));
    if (entry == nullptr) return parts_.model->text(static_cast<std::uint32_t>(id));
    auto const place = static_cast<std::size_t>(entry - parts_.added.entries().data());
    if (skip_special && skipped_[place]) return std::nullopt;
    return entry->normalized;
}

bool TextTokenizer::Impl::append_bytes(Token id, bool skip_special, std::string& bytes) const {
    if (id < 0) return false;
    auto const number = static_cast<std::uint32_t>(id);
    if (auto const* const entry = parts_.added.find(number)) {
        auto const place = static_cast<std::size_t>(entry - parts_.added.entries().data());
        if (skip_special && skipped_[place]) return false;
        bytes += added_bytes_[place];
        return true;
    }
    if (auto const own = parts_.model->bytes(number)) {
        bytes += *own;
        return true;
    }
    auto const text = parts_.model->text(number);
    if (!text) return false;
    bytes += bytes_of_text(*text);
    return true;
}

bool TextTokenizer::Impl::is_special(Token id) const noexcept {
    auto const* const entry = id < 0 ? nullptr : parts_.added.find(static_cast<std::uint32_t>(id));
    return entry != nullptr && entry->token.special;
}

TextTokenizer::TextTokenizer(std::shared_ptr<Impl const> impl) noexcept : impl_{std::move(impl)} {}

TextTokenizer TextTokenizer::from_json(std::string_view json) { return from_json(json, {}); }

TextTokenizer TextTokenizer::from_json(std::string_view json, NamedTokens const& named) {
    return TextTokenizer{std::make_shared<Impl const>(read_tokenizer_json(json), named)};
}

TextTokenizer TextTokenizer::from_tiktoken(Tiktoken const& tiktoken) {
    return from_tiktoken(tiktoken, {});
}

TextTokenizer TextTokenizer::from_tiktoken(Tiktoken const& tiktoken, NamedTokens const& named) {
    return TextTokenizer{std::make_shared<Impl const>(read_tiktoken(tiktoken), named)};
}

TextTokenizer TextTokenizer::from_file(std::filesystem::path const& path) {
    return from_file(path, {});
}

TextTokenizer TextTokenizer::from_file(std::filesystem::path const& path,
                                       NamedTokens const& named) {
    std::error_code error;
    auto const size = std::filesystem::file_size(path, error);
    std::ifstream file{path, std::ios::binary};
    if (error || !file) {
        refuse("TextTokenizer: " + path.string() + " cannot be read" +
                   (error ? " (" + error.message() + ")" : std::string{}) +
                   "; give the path of a tokenizer.json",
               "path", path.string());
    }
    if (size > 0x7fffffff) {
        refuse("TextTokenizer: " + path.string() + " has " + std::to_string(size) +
                   " bytes; use a file of less than 2 GiB",
               "path", path.string());
    }
    std::string json(size, '\0');
    file.read(json.data(), static_cast<std::streamsize>(size));
    json.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
    return from_json(json, named);
}

std::vector<Token> TextTokenizer::encode(std::string_view text) const { return encode(text, {}); }

std::vector<Token> TextTokenizer::encode(std::string_view text,
                                         EncodeOptions const& options) const {
    std::vector<Token> tokens;
    impl_->encode_to(tokens, text, options);
    return tokens;
}

void TextTokenizer::encode_to(std::vector<Token>& tokens, std::string_view text,
                              EncodeOptions const& options) const {
    impl_->encode_to(tokens, text, options);
}

std::vector<std::vector<Token>> TextTokenizer::encode_batch(
    std::span<std::string_view const> texts) const {
    return encode_batch(texts, {}, 0);
}

std::vector<std::vector<Token>> TextTokenizer::encode_batch(std::span<std::string_view const> texts,
                                                            EncodeOptions const& options,
                                                            unsigned threads) const {
    std::vector<std::vector<Token>> results(texts.size());
    if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
    threads = static_cast<unsigned>(std::min<std::size_t>(threads, texts.size()));
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::exception_ptr error;  // of the first text that has one
    auto error_at = texts.size();
    auto const work = [&] {
        for (auto i = next++; i < texts.size(); i = next++) {
            try {
                impl_->encode_to(results[i], texts[i], options);
            } catch (...) {
                std::scoped_lock const lock{mutex};
                if (i < error_at) error = std::current_exception();
                error_at = std::min(error_at, i);
            }
        }
    };
    {
        std::vector<std::jthread> helpers;
        for (unsigned i = 1; i < threads; ++i) helpers.emplace_back(work);
        work();
    }
    if (error) std::rethrow_exception(error);
    return results;
}

Encoding TextTokenizer::encode_with_offsets(std::string_view text) const {
    return encode_with_offsets(text, {});
}

Encoding TextTokenizer::encode_with_offsets(std::string_view text,
                                            EncodeOptions const& options) const {
    return impl_->encode_with_offsets(text, options);
}

std::size_t TextTokenizer::count(std::string_view text) const { return count(text, {}); }

std::size_t TextTokenizer::count(std::string_view text, EncodeOptions const& options) const {
    return impl_->count(text, options);
}

std::string TextTokenizer::decode(std::span<Token const> tokens) const {
    return decode(tokens, {});
}

std::string TextTokenizer::decode(std::span<Token const> tokens,
                                  DecodeOptions const& options) const {
    if (impl_->parts().decodes_bytes) {
        std::string bytes;
        for (auto const token : tokens) impl_->append_bytes(token, options.skip_special, bytes);
        if (find_invalid_utf8(bytes) == bytes.size()) return bytes;
        std::string text;
        Utf8Collector collector;
        collector.push(bytes, text);
        collector.finish(text);
        return text;
    }
    auto decoder = stream_decoder(options);
    auto text = decoder.push(tokens);
    return text += decoder.finish();
}

StreamDecoder TextTokenizer::stream_decoder() const { return stream_decoder({}); }

std::optional<Token> TextTokenizer::id_of(std::string_view token) const {
    return impl_->id_of(token);
}

std::optional<std::string> TextTokenizer::text_of(Token id) const { return impl_->text_of(id); }

std::size_t TextTokenizer::vocabulary_size() const noexcept { return impl_->size(); }

std::size_t TextTokenizer::id_limit() const noexcept { return impl_->limit(); }

std::span<AddedToken const> TextTokenizer::added_tokens() const noexcept { return impl_->added(); }

bool TextTokenizer::is_special(Token id) const noexcept { return impl_->is_special(id); }

std::optional<Token> TextTokenizer::bos() const noexcept { return impl_->bos; }
std::optional<Token> TextTokenizer::eos() const noexcept { return impl_->eos; }
std::optional<Token> TextTokenizer::pad() const noexcept { return impl_->pad; }

std::vector<TextRange> to_character_ranges(std::string_view text,
                                           std::span<TextRange const> ranges) {
    // Ranges mostly ascend, so each position is counted on from the one before it.
    std::size_t byte = 0;
    std::size_t characters = 0;
    auto const to_character = [&](std::size_t position) {
        position = std::min(position, text.size());
        if (position < byte) byte = characters = 0;
        for (; byte < position; ++byte) {
            if (!continues_character(text[byte])) ++characters;
        }
        return characters;
    };
    std::vector<TextRange> result;
    result.reserve(ranges.size());
    for (auto const& range : ranges) {
        auto const begin = to_character(range.begin);
        result.push_back({.begin = begin, .end = to_character(range.end)});
    }
    return result;
}

}  // namespace tinkxx::text
