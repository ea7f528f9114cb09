#include "text/files/hub/hub_cache.hpp"

#include "text/files/disk/failure.hpp"
#include "text/files/disk/text_file.hpp"

#include <algorithm>

namespace tinkxx::text::files {

namespace {

namespace fs = std::filesystem;

bool is_part(std::string_view part) {
    auto const allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_' || c == '.';
    };
    return !part.empty() && part.size() <= 128 && std::ranges::all_of(part, allowed) &&
           part != "." && part.find("..") == std::string_view::npos;
}

/// Of a branch, which may have slashes.
bool is_reference(std::string_view revision) {
    while (true) {
        auto const slash = revision.find('/');
        if (!is_part(revision.substr(0, slash))) return false;
        if (slash == std::string_view::npos) return true;
        revision.remove_prefix(slash + 1);
    }
}

std::string folder_name(std::string_view repository) {
    std::string name = "models--";
    for (auto const c : repository) {
        if (c == '/') {
            name += "--";
        } else {
            name += c;
        }
    }
    return name;
}

}  // namespace

void check_id(TokenizerId const& id, std::string_view operation) {
    auto const slash = id.repository.find('/');
    bool const named =
        is_part(std::string_view{id.repository}.substr(0, slash)) &&
        (slash == std::string::npos || is_part(std::string_view{id.repository}.substr(slash + 1)));
    if (!named) {
        refuse_whole(
            std::string{operation} + ": '" + id.repository +
                "' is not the name of a repository; use ORGANIZATION/NAME, or the path of a "
                "file or folder that exists",
            "repository", id.repository);
    }
    if (id.revision && !is_reference(*id.revision)) {
        refuse_whole(std::string{operation} + ": '" + *id.revision +
                         "' is not a revision; use a commit, branch or tag",
                     "revision", *id.revision);
    }
}

bool is_commit(std::string_view revision) {
    return revision.size() == 40 && std::ranges::all_of(revision, [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           });
}

CachedRepository::CachedRepository(fs::path const& cache, TokenizerId const& id)
    : folder_{cache / folder_name(id.repository)},
      locks_{cache / ".locks" / folder_name(id.repository)},
      revision_{id.revision.value_or("main")} {}

std::optional<std::string> CachedRepository::commit() const {
    if (is_commit(revision_)) return revision_;
    if (!is_file(reference())) return std::nullopt;
    auto text = read_text(reference(), 4096, "find_tokenizer");
    text.resize(text.find_last_not_of(" \t\r\n") + 1);
    if (!is_commit(text)) return std::nullopt;
    return text;
}

fs::path CachedRepository::reference() const { return folder_ / "refs" / revision_; }

fs::path CachedRepository::snapshot(std::string_view commit) const {
    return folder_ / "snapshots" / commit;
}

fs::path CachedRepository::blob(std::string_view checksum) const {
    return folder_ / "blobs" / checksum;
}

fs::path CachedRepository::lock(std::string_view checksum) const {
    return locks_ / (std::string{checksum} + ".lock");
}

}  // namespace tinkxx::text::files
