#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/types/model_input.hpp>
#include <tinkxx/types/sampling.hpp>
#include <tinkxx/types/service.hpp>

#include <boost/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What recordings say, as values of the library, and the other way round.

namespace tinkxx::golden {

using boost::json::value;
using boost::json::value_to;

/// A member that is there and not null, else null.
[[nodiscard]] value const* find(value const& object, std::string_view name);
template <class T>
[[nodiscard]] std::optional<T> member(value const& object, std::string_view name) {
    auto const* found = find(object, name);
    if (found == nullptr) return std::nullopt;
    return value_to<T>(*found);
}
[[nodiscard]] std::string text(value const& object, std::string_view name);
[[nodiscard]] std::string bytes_of(value const& object, std::string_view name);

[[nodiscard]] ModelInput model_input(value const& json);
[[nodiscard]] SamplingParams sampling_params(value const& json);
[[nodiscard]] SampleOptions sample_options(value const& args);

[[nodiscard]] value json_of(std::vector<std::optional<float>> const& logprobs);
[[nodiscard]] value json_of(SampleResponse const& response);
[[nodiscard]] value json_of(ServerCapabilities const& capabilities);

/// The same value, whichever way a number is written; integers to the last digit.
[[nodiscard]] bool same(value const& a, value const& b);
/// Everything that the recording names is in ours, floats to the precision of a float32, or within
/// a part of their size. Older releases name less than ours.
[[nodiscard]] bool agrees(value const& recorded, value const& ours, double tolerance = 0);

/// A recorded result, or a list of results, without the names that Python's classes have.
[[nodiscard]] value without_types(value recorded);

/// What a request is about where several may be under way at one path: the result that it asks
/// for, or the number of what it submits. Empty for all others.
[[nodiscard]] std::string subject_of(value const& recorded);
[[nodiscard]] std::string subject_of(testing::SentRequest const& sent);

/// What the stub server answered, or that it hung up.
[[nodiscard]] testing::Reply reply_of(value const& answer);

/// Expects our error to be of the kind that a recorded one stands for.
void expect_same_error(value const& recorded, Error const& ours);

}  // namespace tinkxx::golden
