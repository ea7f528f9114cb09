#pragma once

#include <tinkxx/types/checkpoint.hpp>
#include <tinkxx/types/service.hpp>
#include <tinkxx/types/timestamp.hpp>
#include <tinkxx/types/training.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tinkxx {

/// A sampler as the service knows it.
struct SamplerInfo {
    std::string sampler_id{};
    std::string base_model{};
    /// The saved weights that it samples from. Empty: those of the base model.
    std::optional<std::string> model_path{};

    bool operator==(SamplerInfo const&) const = default;
};

/// What was made in a session.
struct SessionInfo {
    std::vector<std::string> training_run_ids{};
    std::vector<std::string> sampler_ids{};
    std::optional<UserMetadata> user_metadata{};
    std::optional<std::string> display_name{};

    bool operator==(SessionInfo const&) const = default;
};

/// Ids of sessions, newest first. The service does not say how many there are.
struct SessionPage {
    std::vector<std::string> sessions{};

    bool operator==(SessionPage const&) const = default;
};

/// Which sessions are wanted.
struct SessionQuery {
    /// At most so many at once. Empty: the default of the call.
    std::optional<std::int64_t> limit{};
    /// So many are skipped.
    std::int64_t offset{0};
    AccessScope access_scope{AccessScope::owned};
};

// Search ----------------------------------------------------------------------------------------

/// What a session can be.
enum class SessionState : std::uint8_t { active, cancelled, failed, client_finished };
/// As the service names it, such as `client_finished`.
[[nodiscard]] std::string_view to_string(SessionState state) noexcept;

/// Sessions in one state.
struct SessionStateFilter {
    SessionState state{SessionState::active};
    /// Of `client_finished`: how they were finished. Empty: in any way.
    std::vector<CloseReason> reasons{};

    bool operator==(SessionStateFilter const&) const = default;
};

/// Whose sessions are searched: one's own, all that one may see, or those of some users.
struct OwnSessions {
    bool operator==(OwnSessions const&) const = default;
};
struct AccessibleSessions {
    bool operator==(AccessibleSessions const&) const = default;
};
struct SessionsOfUsers {
    /// One to ten.
    std::vector<std::string> owner_urns{};

    bool operator==(SessionsOfUsers const&) const = default;
};
using SessionOwner = std::variant<OwnSessions, AccessibleSessions, SessionsOfUsers>;

/// Where a search goes on; given back as it came.
struct SessionCursor {
    std::string last_created_at{};
    std::string last_session_id{};

    bool operator==(SessionCursor const&) const = default;
};

/// Which sessions are searched for; those that fit all of it are found.
struct SessionSearch {
    /// With `display_name`, either may fit.
    std::optional<std::string> session_id{};
    /// Empty: of any project.
    std::vector<std::string> project_ids{};
    /// Each of these pairs.
    UserMetadata user_metadata{};
    /// Every word must occur, in any case.
    std::optional<std::string> display_name{};
    SessionOwner owner{};
    /// Any of these. Empty: in any state.
    std::vector<SessionStateFilter> statuses{};
    /// On one page, from 1 to 200.
    std::int64_t limit{50};
    /// `SessionSearchPage::next_cursor` of the page before. Empty: the first page.
    std::optional<SessionCursor> cursor{};

    bool operator==(SessionSearch const&) const = default;
};

/// In what state a session is, and why. Which members are set depends on the state.
struct SessionStatus {
    /// `active`, `cancelled`, `client_finished`, `failed`, or what a newer server says.
    std::string type{};
    /// Of `cancelled` and `client_finished`: what was said about it.
    std::optional<std::string> detail{};
    /// Of `client_finished`: `success`, `errored`, `interrupted`. Of `failed`: what failed:
    /// `request`, `training_run`, `sampling_session`.
    std::optional<std::string> reason{};
    /// Of `failed`: `user` or `internal`, and the text for people.
    std::optional<std::string> category{};
    std::optional<std::string> message{};
    /// Of `failed`: what failed.
    std::optional<std::string> request_id{};
    std::optional<std::string> request_type{};
    std::optional<std::string> training_run_id{};
    std::optional<std::string> sampling_session_id{};

    bool operator==(SessionStatus const&) const = default;
};

/// A session that was found.
struct SessionSummary {
    std::string session_id{};
    std::string owner{};
    std::string project_id{};
    Timestamp created_at{};
    std::int64_t checkpoints_count{0};
    std::optional<std::string> display_name{};
    std::optional<UserMetadata> user_metadata{};
    std::optional<std::int64_t> checkpoint_storage_bytes{};
    /// Empty: neither finished nor known to run.
    std::optional<SessionStatus> status{};

    bool operator==(SessionSummary const&) const = default;
};

struct SessionSearchPage {
    /// Newest first.
    std::vector<SessionSummary> sessions{};
    /// Empty: there are no more.
    std::optional<SessionCursor> next_cursor{};

    bool operator==(SessionSearchPage const&) const = default;
};

}  // namespace tinkxx
