#include "wire/json/json_scan.hpp"

#include "wire/json/json.hpp"

#include <array>
#include <cstdint>
#include <cstring>

namespace tinkxx::wire {

namespace {

using Block = std::uint8_t __attribute__((vector_size(16)));

constexpr Block all(char c) {
    auto const byte = static_cast<std::uint8_t>(c);
    return Block{byte, byte, byte, byte, byte, byte, byte, byte,
                 byte, byte, byte, byte, byte, byte, byte, byte};
}

// Whether sixteen bytes have neither quote nor bracket.
bool dull(char const* at) noexcept {
    Block block;
    std::memcpy(&block, at, sizeof block);
    auto const lower = block | all(' ');  // makes `[` a `{` and `]` a `}`
    auto const hits = (block == all('"')) | (lower == all('{')) | (lower == all('}'));
    std::array<std::uint64_t, 2> halves;
    std::memcpy(halves.data(), &hits, sizeof hits);
    return (halves[0] | halves[1]) == 0;
}

}  // namespace

void JsonScan::skip_blanks() noexcept {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
        ++at_;
    }
}

bool JsonScan::skip(char c) noexcept {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
}

bool JsonScan::skip_string() noexcept {
    auto const from = ++at_;
    for (;;) {
        auto const quote = text_.find('"', at_);
        if (quote == std::string_view::npos) {
            at_ = text_.size();
            return false;
        }
        at_ = quote + 1;
        // An odd number of backslashes before it makes it a part of the text.
        std::size_t slashes = 0;
        while (quote - slashes > from && text_[quote - slashes - 1] == '\\') ++slashes;
        if (slashes % 2 == 0) return true;
    }
}

bool JsonScan::skip_nested() noexcept {
    std::size_t depth = 0;
    while (at_ < text_.size()) {
        while (text_.size() - at_ >= sizeof(Block) && dull(text_.data() + at_)) {
            at_ += sizeof(Block);
        }
        if (at_ == text_.size()) break;
        switch (text_[at_]) {
            case '"':
                if (!skip_string()) return false;
                break;
            case '{':
            case '[':
                ++depth;
                ++at_;
                break;
            case '}':
            case ']':
                ++at_;
                if (--depth == 0) return true;
                break;
            default:
                ++at_;
        }
    }
    return false;
}

bool JsonScan::skip_value() noexcept {
    if (at_ == text_.size()) return false;
    if (text_[at_] == '"') return skip_string();
    if (text_[at_] == '{' || text_[at_] == '[') return skip_nested();
    auto const from = at_;
    at_ = std::min(text_.find_first_of(",}] \t\r\n", at_), text_.size());
    return at_ > from;
}

std::optional<JsonScan::Member> JsonScan::next() {
    if (state_ == State::start) {
        if (!skip('{')) return stop(State::broken);
        state_ = State::members;
        if (skip('}')) {
            skip_blanks();
            return stop(at_ == text_.size() ? State::complete : State::broken);
        }
    } else if (state_ == State::members) {
        if (skip('}')) {
            skip_blanks();
            return stop(at_ == text_.size() ? State::complete : State::broken);
        }
        if (!skip(',')) return stop(State::broken);
    } else {
        return std::nullopt;
    }

    skip_blanks();
    auto from = at_;
    if (at_ == text_.size() || text_[at_] != '"' || !skip_string()) return stop(State::broken);
    auto const name = text_.substr(from, at_ - from);
    Member member;
    if (name.find('\\') == std::string_view::npos) {
        member.name = name.substr(1, name.size() - 2);
    } else {
        auto const text = parse_json("", name);
        if (!text || !text->is_string()) return stop(State::broken);
        member.name.assign(text->get_string().data(), text->get_string().size());
    }
    if (!skip(':')) return stop(State::broken);
    skip_blanks();
    from = at_;
    if (!skip_value()) return stop(State::broken);
    member.value = text_.substr(from, at_ - from);
    return member;
}

}  // namespace tinkxx::wire
