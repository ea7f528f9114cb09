#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// The text that the tiny model learns: stories from a grammar, small facts, questions with their
// answers, small sums. Everything is a pure function of a seed.

namespace tinkxx::tiny {

/// Ends a text; the bytes are the tokens 0 … 255.
inline constexpr std::int32_t end_token = 256;
inline constexpr int vocabulary = 257;

/// Text number `index` of `seed`, one or more whole lines.
std::string document(std::uint64_t seed, std::uint64_t index);

/// True if `text` is a whole text of the grammar. What it says need not be true.
bool parses(std::string_view text);

/// A question with its answer: "What is the capital of Peru?" and "Lima".
struct Question {
    std::string text{};
    std::string answer{};

    /// What the model is given: it goes on with a space, the answer and the end of the line.
    [[nodiscard]] std::string prompt() const { return "Q: " + text + "\nA:"; }
};

/// Every question about facts, in an order in which any stretch holds some of each kind.
std::vector<Question> fact_questions();
/// Every sum and difference of one-digit numbers that is not negative, in such an order.
std::vector<Question> sum_questions();

/// One token for each byte.
std::vector<std::int32_t> tokens_of(std::string_view text);
/// The bytes of tokens; those beyond the bytes are left out.
std::string text_of(std::vector<std::int32_t> const& tokens);

}  // namespace tinkxx::tiny
