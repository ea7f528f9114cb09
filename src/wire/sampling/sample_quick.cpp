#include "wire/sampling/sample_quick.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace tinkxx::wire {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// 10^n is exact in a double up to here.
constexpr int most_exact_power = 22;
constexpr auto powers_of_ten = [] {
    std::array<double, most_exact_power + 1> powers{};
    double power = 1;
    for (auto& each : powers) {
        each = power;
        power *= 10;
    }
    return powers;
}();
// Any whole number of so many digits is exact in a double.
constexpr int most_exact_digits = 15;

/// Reads one value after the other. Each member says whether what it is named for was there, and
/// after a no the text is not read any further.
class Quick {
public:
    explicit Quick(std::string_view text) noexcept : at_{text.data()}, end_{at_ + text.size()} {}

    [[nodiscard]] bool skip(char c) noexcept {
        skip_blanks();
        if (at_ == end_ || *at_ != c) return false;
        ++at_;
        return true;
    }
    [[nodiscard]] bool ended() noexcept {
        skip_blanks();
        return at_ == end_;
    }
    [[nodiscard]] bool null() noexcept {
        skip_blanks();
        if (end_ - at_ < 4 || std::string_view{at_, 4} != "null") return false;
        at_ += 4;
        return true;
    }
    /// Of printable ASCII without escapes.
    [[nodiscard]] bool text(std::string_view& out) noexcept {
        if (!skip('"')) return false;
        auto const* const from = at_;
        while (at_ != end_ && *at_ >= ' ' && *at_ <= '~' && *at_ != '"' && *at_ != '\\') ++at_;
        if (at_ == end_ || *at_ != '"') return false;
        out = {from, static_cast<std::size_t>(at_ - from)};
        ++at_;
        return true;
    }
    [[nodiscard]] bool key(std::string_view& out) noexcept { return text(out) && skip(':'); }

    template <class Number>
    [[nodiscard]] bool whole(Number& out) noexcept {
        skip_blanks();
        bool const negative = at_ != end_ && *at_ == '-';
        if (negative) ++at_;
        auto const* const from = at_;
        std::int64_t value = 0;
        while (at_ != end_ && is_digit(*at_) && at_ - from <= most_exact_digits) {
            value = value * 10 + (*at_++ - '0');
        }
        auto const digits = at_ - from;
        if (digits == 0 || digits > most_exact_digits || (*from == '0' && digits > 1)) return false;
        if (at_ != end_ && (*at_ == '.' || *at_ == 'e' || *at_ == 'E')) return false;
        if (negative) value = -value;
        if (value < std::numeric_limits<Number>::min() ||
            value > std::numeric_limits<Number>::max()) {
            return false;
        }
        out = static_cast<Number>(value);
        return true;
    }

    [[nodiscard]] bool real(float& out) noexcept {
        skip_blanks();
        auto const* const from = at_;
        bool const negative = at_ != end_ && *at_ == '-';
        if (negative) ++at_;
        std::int64_t digits = 0;
        auto const* const first = at_;
        while (at_ != end_ && is_digit(*at_) && at_ - first < most_exact_digits) {
            digits = digits * 10 + (*at_++ - '0');
        }
        auto count = at_ - first;
        if (count == 0 || (*first == '0' && count > 1)) return false;
        std::ptrdiff_t decimals = 0;
        if (at_ != end_ && *at_ == '.') {
            auto const* const point = ++at_;
            while (at_ != end_ && is_digit(*at_) && count < most_exact_digits) {
                digits = digits * 10 + (*at_++ - '0');
                ++count;
            }
            decimals = at_ - point;
            if (decimals == 0) return false;
        }
        // Exact: a whole number below 2^53 divided by an exact power of ten, rounded once.
        double value = static_cast<double>(digits) / powers_of_ten[static_cast<unsigned>(decimals)];
        if (negative) value = -value;
        if (at_ != end_ && (is_digit(*at_) || *at_ == 'e' || *at_ == 'E')) {
            if (!rest_of_number(from, value)) return false;
        }
        out = static_cast<float>(value);
        return true;
    }

    /// `read(quick, element)` for each.
    template <class T, class Read>
    [[nodiscard]] bool list(std::vector<T>& out, Read read) {
        if (!skip('[')) return false;
        if (skip(']')) return true;
        if constexpr (std::is_arithmetic_v<T>) {
            auto const* const close = std::find(at_, end_, ']');
            out.reserve(static_cast<std::size_t>(std::count(at_, close, ',')) + 1);
        }
        do {
            if (!read(*this, out.emplace_back())) return false;
        } while (skip(','));
        return skip(']');
    }

private:
    void skip_blanks() noexcept {
        while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
    }
    /// The number that begins at `from` has more digits, or an exponent.
    [[nodiscard]] bool rest_of_number(char const* from, double& value) noexcept {
        while (at_ != end_ && is_digit(*at_)) ++at_;
        if (at_ != end_ && *at_ == '.') return false;  // more than 15 digits before it
        if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
            ++at_;
            if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
            if (at_ == end_ || !is_digit(*at_)) return false;
            while (at_ != end_ && is_digit(*at_)) ++at_;
        }
        auto const [stop, failed] = std::from_chars(from, at_, value);
        return failed == std::errc{} && stop == at_;
    }

    char const* at_;
    char const* end_;
};

/// The members of an object: `member(name)` reads the value. Each name once.
template <class Member>
bool members(Quick& in, Member member) {
    if (!in.skip('{')) return false;
    if (in.skip('}')) return true;
    do {
        std::string_view name;
        if (!in.key(name) || !member(name)) return false;
    } while (in.skip(','));
    return in.skip('}');
}

bool read_sequence(Quick& in, SampledSequence& out) {
    bool stop_reason = false;
    bool tokens = false;
    bool logprobs = false;
    bool id = false;
    bool const read = members(in, [&](std::string_view name) {
        if (name == "tokens") {
            return !std::exchange(tokens, true) &&
                   in.list(out.tokens, [](Quick& from, Token& token) { return from.whole(token); });
        }
        if (name == "logprobs") {
            if (std::exchange(logprobs, true)) return false;
            if (in.null()) return true;
            return in.list(out.logprobs.emplace(),
                           [](Quick& from, float& logprob) { return from.real(logprob); });
        }
        if (name == "stop_reason") {
            std::string_view text;
            if (std::exchange(stop_reason, true) || !in.text(text)) return false;
            out.stop_reason = text == "stop" ? StopReason::stop : StopReason::length;
            return text == "stop" || text == "length";
        }
        if (name == "sequence_id") {
            std::string_view text;
            if (std::exchange(id, true) || !in.text(text)) return false;
            out.sequence_id = text;
            return true;
        }
        return name == "topk_logprobs" && in.null();
    });
    return read && stop_reason && tokens;
}

}  // namespace

std::optional<SampleResponse> quick_sample(std::string_view json) {
    Quick in{json};
    SampleResponse out;
    bool sequences = false;
    bool type = false;
    bool cached = false;
    bool const read = members(in, [&](std::string_view name) {
        if (name == "sequences") {
            return !std::exchange(sequences, true) && in.list(out.sequences, read_sequence);
        }
        if (name == "type") {
            std::string_view text;
            return !std::exchange(type, true) && in.text(text) && text == "sample";
        }
        if (name == "prompt_cache_hit_tokens") {
            return !std::exchange(cached, true) && in.whole(out.prompt_cache_hit_tokens);
        }
        return (name == "prompt_logprobs" || name == "topk_prompt_logprobs" ||
                name == "target_prompt_logprobs" || name == "prompt_alt_tokens") &&
               in.null();
    });
    if (!read || !sequences || !in.ended()) return std::nullopt;
    return out;
}

}  // namespace tinkxx::wire
