#pragma once

#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/types/training.hpp>

#include "wire/server/requests.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>

// The bodies of forward and backward passes: what a server reads in them, and what the stub server
// of the recordings answers.

namespace tinkxx::golden {

/// The content of one zstd frame.
[[nodiscard]] std::string unpacked(std::string const& frame);
/// The body as the server reads it.
[[nodiscard]] std::string plain_body(testing::SentRequest const& request);
[[nodiscard]] bool is_protobuf(testing::SentRequest const& request);

/// What the request submits, in whichever encoding; nothing if it is no pass.
[[nodiscard]] std::optional<wire::server::ForwardBackward> pass_of(
    testing::SentRequest const& request);
/// What the stub answers to a pass on `data`, by the rule of wire/README.md.
[[nodiscard]] ForwardBackwardOutput answer_to(std::span<Datum const> data);

/// A protobuf message without one of its fields.
[[nodiscard]] std::string without_field(std::string const& message, std::uint32_t number);
/// Whether two bodies are the same message, but for the last bits of the numbers.
[[nodiscard]] bool nearly_same_pass(std::string const& one, std::string const& other);

}  // namespace tinkxx::golden
