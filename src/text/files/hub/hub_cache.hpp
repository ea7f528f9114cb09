#pragma once

#include <tinkxx/types/training.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::text::files {

/// Throws `ValidationError`, which begins with `operation`, unless this is "name" or "org/name" in
/// the letters that the hub allows, and the revision likewise: both become parts of paths and URLs.
void check_id(TokenizerId const& id, std::string_view operation);

/// Whether a revision is the commit itself, and not the name of a branch or tag.
[[nodiscard]] bool is_commit(std::string_view revision);

/// The folders of one repository in a cache with the layout of Hugging Face:
///
///     models--org--name/refs/main              the commit that main was when it was last looked at
///     models--org--name/snapshots/COMMIT/FILE  a link to
///     models--org--name/blobs/CHECKSUM         the content
class CachedRepository {
public:
    /// `id` must have passed `check_id`.
    CachedRepository(std::filesystem::path const& cache, TokenizerId const& id);

    [[nodiscard]] std::filesystem::path const& folder() const noexcept { return folder_; }
    /// "main" unless one is pinned.
    [[nodiscard]] std::string const& revision() const noexcept { return revision_; }
    /// What the revision stands for, as far as the cache knows.
    [[nodiscard]] std::optional<std::string> commit() const;
    [[nodiscard]] std::filesystem::path reference() const;
    [[nodiscard]] std::filesystem::path snapshot(std::string_view commit) const;
    [[nodiscard]] std::filesystem::path blob(std::string_view checksum) const;
    /// That other programs lock too while they write the blob.
    [[nodiscard]] std::filesystem::path lock(std::string_view checksum) const;

private:
    std::filesystem::path folder_;
    std::filesystem::path locks_;
    std::string revision_;
};

}  // namespace tinkxx::text::files
