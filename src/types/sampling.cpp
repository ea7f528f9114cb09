// The few members of the value types that are worth a source file.
#include <tinkxx/error.hpp>
#include <tinkxx/tokenizer.hpp>
#include <tinkxx/types/queue_state.hpp>
#include <tinkxx/types/sampling.hpp>

#include "base/common/invalid.hpp"

#include <algorithm>

namespace tinkxx {

namespace {

// An empty list has no other meaning than "nowhere", so both compare equal.
template <class T>
Stop::Value list_or_nowhere(std::vector<T> list) {
    if (list.empty()) return Stop::Nowhere{};
    return list;
}

}  // namespace

Stop::Stop(std::vector<std::string> texts) : value_{list_or_nowhere(std::move(texts))} {}
Stop::Stop(std::vector<Token> tokens) : value_{list_or_nowhere(std::move(tokens))} {}
Stop::Stop(std::initializer_list<char const*> texts)
    : value_{list_or_nowhere(std::vector<std::string>{texts.begin(), texts.end()})} {}
Stop::Stop(std::initializer_list<Token> tokens)
    : value_{list_or_nowhere(std::vector<Token>{tokens})} {}

Stop Stop::nowhere() {
    Stop stop;
    stop.value_ = Nowhere{};
    return stop;
}

std::string SampleResponse::text(std::size_t sequence) const {
    if (!tokenizer) {
        Error{{.kind = ErrorKind::usage,
               .message =
                   "SampleResponse::text: the prompt was given as tokens, so the answer has no "
                   "tokenizer; decode its tokens with Tokenizer::decode"}}
            .raise();
    }
    if (sequence >= sequences.size()) {
        base::refuse("SampleResponse::text", "sequence", std::to_string(sequence),
                     "sequence is " + std::to_string(sequence) + ", and the answer has " +
                         std::to_string(sequences.size()) + " sequences, counted from 0");
    }
    return tokenizer->decode_text(sequences[sequence].tokens);
}

std::string_view to_string(QueueState state) noexcept {
    switch (state) {
        case QueueState::active:
            return "active";
        case QueueState::paused_rate_limit:
            return "paused_rate_limit";
        case QueueState::paused_capacity:
            return "paused_capacity";
        case QueueState::unknown:
            break;
    }
    return "unknown";
}

QueueState parse_queue_state(std::string_view text) noexcept {
    constexpr std::string_view blanks = " \t\r\n";
    auto const first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) return QueueState::unknown;
    text = text.substr(first, text.find_last_not_of(blanks) - first + 1);
    auto const lower = [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    for (auto const state :
         {QueueState::active, QueueState::paused_rate_limit, QueueState::paused_capacity}) {
        if (std::ranges::equal(text, to_string(state), {}, lower)) return state;
    }
    return QueueState::unknown;
}

}  // namespace tinkxx
