#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx {

/// A model that a server offers. Members that the server does not report are empty.
struct SupportedModel {
    std::optional<std::string> model_name{};
    std::optional<std::int64_t> max_context_length{};
    /// Whether training runs can be started on it.
    std::optional<bool> trainable{};
    /// Whether it can be sampled from.
    std::optional<bool> sampleable{};

    bool operator==(SupportedModel const&) const = default;
};

struct ServerCapabilities {
    std::vector<SupportedModel> supported_models{};

    bool operator==(ServerCapabilities const&) const = default;
};

/// The user or organisation that a client's credential belongs to.
struct Identity {
    std::string user_urn{};
    std::optional<std::string> email{};
    /// `tml:organization:<id>`.
    std::optional<std::string> organization_urn{};

    bool operator==(Identity const&) const = default;
};

/// How a session ended, as reported by its owner.
enum class CloseReason : std::uint8_t { success, errored, interrupted };

}  // namespace tinkxx
