#pragma once

#include <tinkxx/local/server.hpp>
#include <tinkxx/tinkxx.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tinkxx::load {

inline constexpr char const* model_name = "tinkxx/tiny";
inline constexpr std::int64_t tokens_of_a_sample = 4;

/// A sample that is asked for again and again, and its one right answer.
struct Question {
    ModelInput prompt{};
    SamplingParams params{};
    SampledSequence answer{};

    [[nodiscard]] bool right(SampleResponse const& response) const {
        return response.sequences.size() == 1 && response.sequences[0].tokens == answer.tokens &&
               response.sequences[0].logprobs == answer.logprobs;
    }
};

/// A server in this process, without faults: what it says is right.
[[nodiscard]] local::Server quiet_server();

/// Some of different lengths, answered by `quiet_server`. Its threads and folders are gone then.
[[nodiscard]] std::vector<Question> make_questions(std::uint64_t seed);

/// A text of the tiny model, whose tokens are bytes.
[[nodiscard]] ModelInput text_input(std::string const& text);

}  // namespace tinkxx::load
