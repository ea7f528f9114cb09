#include "text/unicode/aligned_text.hpp"

#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <array>

namespace tinkxx::text {
namespace {

/// GPT-2's alphabet: printable Latin-1 characters stand for themselves, the rest from U+0100 on.
constexpr auto byte_characters = [] {
    std::array<char16_t, 256> table{};
    char16_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
        auto const printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) ||
                               (byte >= 0xae && byte <= 0xff);
        table[static_cast<std::size_t>(byte)] =
            printable ? static_cast<char16_t>(byte) : static_cast<char16_t>(next++);
    }
    return table;
}();

constexpr auto character_bytes = [] {
    std::array<std::int16_t, 0x144> table{};
    table.fill(-1);
    for (std::size_t byte = 0; byte < 256; ++byte) {
        table[byte_characters[byte]] = static_cast<std::int16_t>(byte);
    }
    return table;
}();

}  // namespace

char32_t character_of_byte(unsigned char byte) noexcept { return byte_characters[byte]; }

int byte_of_character(char32_t c) noexcept {
    return c < character_bytes.size() ? character_bytes[c] : -1;
}

void AlignedText::assign(std::string_view text, std::size_t shift, bool tracked) {
    text_.assign(text);
    limit_ = longest_result(text.size());
    ranges_.clear();
    tracked_ = tracked;
    if (!tracked) return;
    ranges_.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
        auto const length = utf8_length(static_cast<unsigned char>(text[i]));
        ranges_.insert(ranges_.end(), length, {.begin = shift + i, .end = shift + i + length});
        i += length;
    }
}

void AlignedText::clear() noexcept {
    text_.clear();
    ranges_.clear();
}

void AlignedText::check_size(std::size_t size) const {
    if (size > limit_) refuse_growth("encode", "normalizer", limit_);
}

void AlignedText::transform(std::span<Change const> changes, std::size_t removed) {
    check_size(changes.size());
    std::string result;
    result.reserve(text_.size());
    if (!tracked_) {
        for (auto const& change : changes) append_utf8(result, change.character);
        text_ = std::move(result);
        return;
    }
    std::vector<TextRange> ranges;
    ranges.reserve(ranges_.size());
    std::size_t offset = 0;
    auto const skip = [&](std::size_t characters) {
        for (; characters > 0 && offset < text_.size(); --characters) {
            offset += utf8_length(static_cast<unsigned char>(text_[offset]));
        }
    };
    skip(removed);
    for (auto const& change : changes) {
        TextRange range{};
        if (change.kind > 0) {
            if (offset > 0) range = ranges_[offset - 1];
        } else {
            if (!ranges_.empty()) range = ranges_[std::min(offset, ranges_.size() - 1)];
            skip(1 + static_cast<std::size_t>(-change.kind));
        }
        append_utf8(result, change.character);
        ranges.resize(result.size(), range);
    }
    text_ = std::move(result);
    ranges_ = std::move(ranges);
}

void AlignedText::prepend(std::string_view text) {
    if (text_.empty()) return;
    check_size(text_.size() + text.size());
    text_.insert(0, text);
    if (tracked_) ranges_.insert(ranges_.begin(), text.size(), TextRange{ranges_.front()});
}

void AlignedText::replace(std::span<TextRange const> matches, std::string_view content) {
    if (matches.empty()) return;
    check_size(matches.size() * content.size());
    std::string result;
    std::vector<TextRange> ranges;
    std::size_t done = 0;
    auto const copy_until = [&](std::size_t end) {
        result.append(text_, done, end - done);
        if (!tracked_) return;
        auto const from = ranges_.begin();
        ranges.insert(ranges.end(), from + static_cast<std::ptrdiff_t>(done),
                      from + static_cast<std::ptrdiff_t>(end));
    };
    for (auto const& match : matches) {
        copy_until(match.begin);
        // What is inserted belongs to the last character that it replaces.
        auto const range = tracked_ && match.end > 0 ? ranges_[match.end - 1] : TextRange{};
        result += content;
        if (tracked_) ranges.resize(result.size(), range);
        done = match.end;
    }
    copy_until(text_.size());
    text_ = std::move(result);
    ranges_ = std::move(ranges);
}

void AlignedText::map_bytes() {
    check_size(text_.size());
    std::string result;
    std::vector<TextRange> ranges;
    for (std::size_t i = 0; i < text_.size(); ++i) {
        append_utf8(result, character_of_byte(static_cast<unsigned char>(text_[i])));
        if (tracked_) ranges.resize(result.size(), ranges_[i]);
    }
    text_ = std::move(result);
    ranges_ = std::move(ranges);
}

void AlignedText::append(AlignedText const& other, std::size_t begin, std::size_t end) {
    limit_ = std::max(limit_, other.limit_);
    check_size(text_.size() + (end - begin));
    text_.append(other.text_, begin, end - begin);
    tracked_ = other.tracked_;
    if (!tracked_) return;
    auto const from = other.ranges_.begin();
    ranges_.insert(ranges_.end(), from + static_cast<std::ptrdiff_t>(begin),
                   from + static_cast<std::ptrdiff_t>(end));
}

TextRange original_range(AlignedText const& text, std::size_t begin, std::size_t end) {
    auto const ranges = text.ranges();
    if (ranges.empty()) return {};
    if (begin >= end) {
        auto const at = ranges[std::min(begin, ranges.size() - 1)].begin;
        return {.begin = at, .end = at};
    }
    return {.begin = ranges[begin].begin, .end = ranges[std::min(end, ranges.size()) - 1].end};
}

}  // namespace tinkxx::text
