#pragma once

#include <tinkxx/rest_client.hpp>

#include <string>

namespace tinkxx::cli {

/// What is meant by what people type for an id: the id itself, its first characters if no other
/// begins so, or `@latest`. A long id is taken as it stands, so that nothing is asked for it. Throw
/// `BadUsage` for what is not clear, and `Error` of the requests.

/// The id of a run; also of the path of a checkpoint.
[[nodiscard]] std::string run_of(RestClient const& rest, std::string const& given);
[[nodiscard]] std::string session_of(RestClient const& rest, std::string const& given);
/// The path of a checkpoint, `tinker://run/kind/name`: given with or without `tinker://`, with the
/// first characters of the run, as `run/@latest`, or as `@latest` of all runs.
[[nodiscard]] std::string checkpoint_of(RestClient const& rest, std::string const& given);

/// `given` as a path, without any request; what stands for the run is not looked at.
[[nodiscard]] std::string written_path(std::string const& given);

inline constexpr char const* id_words =
    "Ids can be cut short as long as one thing alone begins so; @latest is the newest.";

}  // namespace tinkxx::cli
