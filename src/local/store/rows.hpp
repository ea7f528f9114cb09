#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/scheduler.hpp>

#include "local/store/files.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What a server remembers beyond its end, and how it is written down.

namespace tinkxx::local {

using Texts = std::map<std::string, std::string>;
[[nodiscard]] std::size_t bytes_of(Texts const& texts) noexcept;

enum class SessionPhase : std::uint8_t { active, finished, expired };

struct SessionRow {
    std::string id{};
    WallTime created{};
    std::vector<std::string> tags{};
    Texts user_metadata{};
    std::string sdk_version{};
    std::optional<std::string> project_id{};
    std::optional<std::string> display_name{};
    SessionPhase status{SessionPhase::active};
    /// Of a finished one: `success`, `errored` or `interrupted`.
    std::string reason{};
    std::optional<std::string> detail{};
};

/// What of a base model is trained.
struct Training {
    std::int64_t rank{0};
    std::uint64_t seed{0};
    bool train_attn{true};
    bool train_mlp{true};
    bool train_unembed{true};

    bool operator==(Training const&) const = default;
};

struct RunRow {
    std::string id{};
    std::string session{};
    std::string base_model{};
    Training training{};
    Texts user_metadata{};
    WallTime created{};
    WallTime last_request{};
};

struct SamplerRow {
    std::string id{};
    std::string session{};
    std::string base_model{};
    /// `tinker://…`, if it samples from saved weights.
    std::optional<std::string> model_path{};
    /// Below the home, for weights that have no path.
    std::string folder{};
    Training training{};
    WallTime created{};
    /// Copies of the client that were counted.
    std::int64_t clones{0};
    /// Of the files in the folder.
    FileMarks files{};
};

enum class Kind : std::uint8_t { weights, sampler_weights, external_weights };
[[nodiscard]] std::string_view to_string(Kind kind) noexcept;
[[nodiscard]] std::optional<Kind> parse_kind(std::string_view text) noexcept;
/// `training`, `sampler` or `external`.
[[nodiscard]] std::string_view checkpoint_type(Kind kind) noexcept;

/// `tinker://run/kind/name`.
struct TinkerPath {
    std::string run{};
    Kind kind{Kind::weights};
    std::string name{};

    [[nodiscard]] std::string text() const;
    auto operator<=>(TinkerPath const&) const = default;
};
[[nodiscard]] std::optional<TinkerPath> parse_tinker_path(std::string_view text);
/// Whether a checkpoint may be called so: letters, digits, `-`, `_` and `.`, not only dots.
[[nodiscard]] bool valid_name(std::string_view name) noexcept;

struct CheckpointRow {
    TinkerPath path{};
    /// Below the home; a new one for each save, so that an older one of the same name stays whole
    /// until the new one is known.
    std::string folder{};
    std::string base_model{};
    Training training{};
    WallTime created{};
    /// The order in which they were made.
    std::int64_t ordinal{0};
    std::int64_t size_bytes{0};
    bool is_public{false};
    std::optional<Texts> user_metadata{};
    std::optional<WallTime> expires{};
    /// Of the files in the folder; empty if it was saved by a version that took none.
    FileMarks files{};
};

/// A result that is pending, or what came of it.
struct RequestRow {
    std::string id{};
    /// The model or the sampler that it belongs to.
    std::string owner{};
    /// `json`, `sample` or `forward_backward`.
    std::string form{};
    /// `pending`, `done` or `failed`.
    std::string state{};
    std::string error{};
    std::string category{};
    std::int64_t size{0};
    WallTime at{};
    /// Of a sample that is pending: what was asked, to be computed after all.
    std::string body{};
};

/// Numbers of rows stay below this, so that the next one always exists.
inline constexpr std::int64_t most_ordinals = 1'000'000'000'000'000;

[[nodiscard]] std::string encode(SessionRow const& row);
[[nodiscard]] std::string encode(RunRow const& row);
[[nodiscard]] std::string encode(SamplerRow const& row);
[[nodiscard]] std::string encode(CheckpointRow const& row);
[[nodiscard]] std::string encode(RequestRow const& row);
[[nodiscard]] Result<SessionRow> decode_session_row(std::string_view json);
[[nodiscard]] Result<RunRow> decode_run_row(std::string_view json);
[[nodiscard]] Result<SamplerRow> decode_sampler_row(std::string_view json);
[[nodiscard]] Result<CheckpointRow> decode_checkpoint_row(std::string_view json);
[[nodiscard]] Result<RequestRow> decode_request_row(std::string_view json);

}  // namespace tinkxx::local
