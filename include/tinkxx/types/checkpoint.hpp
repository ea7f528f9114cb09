#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/types/timestamp.hpp>
#include <tinkxx/types/training.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx {

// Names -----------------------------------------------------------------------------------------

/// What a checkpoint holds, as its path says.
enum class CheckpointKind : std::uint8_t {
    weights,           ///< to train on: weights and the state of the optimizer
    sampler_weights,   ///< to sample from
    external_weights,  ///< in the format of others
};
/// As paths have it, such as `sampler_weights`.
[[nodiscard]] std::string_view to_string(CheckpointKind kind) noexcept;
/// As `Checkpoint::checkpoint_type` has it: `training`, `sampler` or `external`.
[[nodiscard]] std::string_view checkpoint_type(CheckpointKind kind) noexcept;

/// The parts of `tinker://<training_run_id>/<kind>/<name>`.
struct CheckpointPath {
    std::string training_run_id{};
    CheckpointKind kind{CheckpointKind::weights};
    std::string name{};

    /// The last two parts, such as `weights/step-10`: the id within the run.
    [[nodiscard]] std::string checkpoint_id() const;

    bool operator==(CheckpointPath const&) const = default;
};
/// The path as text.
[[nodiscard]] std::string to_string(CheckpointPath const& path);
/// The parts of a path, or an error of kind validation that names it.
[[nodiscard]] Result<CheckpointPath> parse_checkpoint_path(std::string_view text);

/// Which checkpoint is meant: by its path, or by its run and its id there.
///
///     rest.delete_checkpoint("tinker://run/weights/step-10");
///     rest.delete_checkpoint({"run", "weights/step-10"});
///
/// Looked at by the call that it is given to.
class CheckpointRef {
public:
    CheckpointRef(std::string path) : path_{std::move(path)} {}
    CheckpointRef(char const* path) : path_{path} {}
    CheckpointRef(CheckpointPath const& path) : path_{to_string(path)} {}
    CheckpointRef(std::string training_run_id, std::string checkpoint_id)
        : run_{std::move(training_run_id)}, id_{std::move(checkpoint_id)}, by_id_{true} {}

    /// Whether run and id were given.
    [[nodiscard]] bool by_id() const noexcept { return by_id_; }
    /// What was given; empty for the other form.
    [[nodiscard]] std::string const& path() const noexcept { return path_; }
    [[nodiscard]] std::string const& training_run_id() const noexcept { return run_; }
    [[nodiscard]] std::string const& checkpoint_id() const noexcept { return id_; }

private:
    std::string path_{};
    std::string run_{};
    std::string id_{};
    bool by_id_{false};
};

// Lists -----------------------------------------------------------------------------------------

/// Whose things are meant: one's own, or all that one may see.
enum class AccessScope : std::uint8_t { owned, accessible };
/// `owned` or `accessible`.
[[nodiscard]] std::string_view to_string(AccessScope scope) noexcept;

/// Which part of a list a page is.
struct Cursor {
    std::int64_t offset{0};
    std::int64_t limit{0};
    /// Of the whole list.
    std::int64_t total_count{0};

    bool operator==(Cursor const&) const = default;
};

/// Which part of a list is wanted.
struct PageQuery {
    /// At most so many at once. Empty: the default of the call.
    std::optional<std::int64_t> limit{};
    /// So many are skipped.
    std::int64_t offset{0};
};

/// A checkpoint as the service lists it.
struct Checkpoint {
    /// Within its run, such as `weights/step-10`.
    std::string checkpoint_id{};
    /// `training`, `sampler`, `external`, or what a newer server says.
    std::string checkpoint_type{};
    /// When it was saved.
    Timestamp time{};
    std::string tinker_path{};
    std::optional<std::int64_t> size_bytes{};
    /// Whether everybody may load it.
    bool is_public{false};
    std::optional<UserMetadata> user_metadata{};
    /// Empty: it is kept until it is deleted.
    std::optional<Timestamp> expires_at{};

    bool operator==(Checkpoint const&) const = default;
};

struct CheckpointPage {
    std::vector<Checkpoint> checkpoints{};
    /// Empty if the list came as a whole.
    std::optional<Cursor> cursor{};

    bool operator==(CheckpointPage const&) const = default;
};

/// Where a checkpoint is copied to.
struct CopyWeightsOptions {
    /// Empty: the client's own project.
    std::string destination_project{};
    /// Until the copy is deleted. Empty: for ever; that of the original does not count.
    std::optional<std::chrono::seconds> ttl{};
    /// The credential of the checkpoint's owner, if that is somebody else. Never written to a log.
    std::string weights_access_token{};
};

// Links -----------------------------------------------------------------------------------------

/// Where the files of a checkpoint can be fetched as one archive. Whoever has the URL can do so.
struct ArchiveUrl {
    std::string url{};
    Timestamp expires{};

    bool operator==(ArchiveUrl const&) const = default;
};

/// Where each file of external weights can be fetched. Whoever has a URL can do so.
struct ExternalWeightsUrls {
    /// By the name of the file, which may be in a folder.
    std::map<std::string, std::string> urls{};
    Timestamp expires{};

    bool operator==(ExternalWeightsUrls const&) const = default;
};

}  // namespace tinkxx
