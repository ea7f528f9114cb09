#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/transport.hpp>

#include "service/session/start_up.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::service {

/// What another process needs to sample from the same weights in the same session.
struct SamplerSnapshot {
    std::string sampling_session_id{};
    bool record_stability_info{false};
    std::string base_url{};
    /// Those of the caller, never those of the environment (R-SESS-37).
    Headers header_overrides{};
    SessionSnapshot session{};
    /// In exports only. Secrets.
    std::optional<std::string> api_key{};
    std::optional<std::string> credential_cmd{};

    bool operator==(SamplerSnapshot const&) const = default;
};

/// A text without secrets, which may be logged and sent around (R-SESS-35): base64url of a JSON
/// object. Credentials and secret headers stay behind.
[[nodiscard]] std::string encode_sampler_handle(SamplerSnapshot const& snapshot);
/// The same with credentials and all headers: a secret (R-SESS-30).
[[nodiscard]] std::string encode_sampler_export(SamplerSnapshot const& snapshot);
/// Reads either. Errors are of kind validation and show nothing of the text.
[[nodiscard]] Result<SamplerSnapshot> decode_sampler_handle(std::string_view handle);

/// How many sequence ids belong to each copy of a sampler.
inline constexpr std::int64_t sequence_ids_per_copy = 1'000'000'000;
/// The number of a copy that asks nobody for one, from 128 random bits: 1 … 10⁹ (R-SESS-32).
[[nodiscard]] std::int64_t random_clone_id(std::uint64_t high, std::uint64_t low) noexcept;

}  // namespace tinkxx::service
