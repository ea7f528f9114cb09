#include "commands/manage/references.hpp"

#include "frame/troubles.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::cli {
namespace {

constexpr std::string_view latest = "@latest";
constexpr std::string_view scheme = "tinker://";
/// As many as a UUID has: nobody types so much of something longer.
constexpr std::size_t whole_id = 36;

/// The only one of `ids` that begins with `given`; `given` itself if none does, so that the server
/// says that there is none.
template <class Ids, class IdOf>
std::string complete(std::string const& given, std::string_view what, Ids ids, IdOf const& id_of) {
    constexpr std::size_t shown = 3;
    std::vector<std::string> found;
    for (auto const& one : ids) {
        std::string const id = id_of(one);
        if (given == latest || id == given) return id;
        if (id.starts_with(given)) found.push_back(id);
    }
    if (given == latest) throw BadUsage{"there is no " + std::string{what} + " yet"};
    if (found.empty()) return given;
    if (found.size() == 1) return found.front();
    auto list = found[0];
    for (std::size_t i = 1; i < std::min(found.size(), shown); ++i) list += ", " + found[i];
    throw BadUsage{std::to_string(found.size()) + " " + std::string{what} + "s begin with " +
                       given + ": " + list + (found.size() > shown ? ", ..." : ""),
                   "give more characters of the id"};
}

Error not_there(std::string message) {
    return Error{{.kind = ErrorKind::status, .message = std::move(message), .http_status = 404}};
}

}  // namespace

std::string run_of(RestClient const& rest, std::string const& given) {
    if (given.starts_with(scheme)) {
        auto const path = parse_checkpoint_path(given);
        if (!path) throw BadUsage{path.error().what()};
        return run_of(rest, path->training_run_id);
    }
    if (given.empty()) throw BadUsage{"the id of the run is empty"};
    if (given.size() >= whole_id) return given;
    return complete(given, "run", rest.training_runs(),
                    [](TrainingRun const& run) { return run.training_run_id; });
}

std::string session_of(RestClient const& rest, std::string const& given) {
    if (given.empty()) throw BadUsage{"the id of the session is empty"};
    if (given.size() >= whole_id) return given;
    return complete(given, "session", rest.sessions(), [](std::string const& id) { return id; });
}

std::string written_path(std::string const& given) {
    auto path = given.starts_with(scheme) ? given : std::string{scheme} + given;
    if (auto const parsed = parse_checkpoint_path(path); !parsed) {
        throw BadUsage{"'" + given + "' is not the path of a checkpoint",
                       "write it as tinker://RUN/weights/NAME, with weights, sampler_weights or "
                       "external_weights"};
    }
    return path;
}

std::string checkpoint_of(RestClient const& rest, std::string const& given) {
    if (given == latest) {
        auto pending = rest.list_user_checkpoints({.limit = 1});
        auto const page = pending.get();
        if (page.checkpoints.empty()) throw not_there("there are no checkpoints yet");
        return page.checkpoints.front().tinker_path;
    }
    auto const rest_of = given.starts_with(scheme) ? given.substr(scheme.size()) : given;
    auto const slash = rest_of.find('/');
    if (slash != std::string::npos && rest_of.substr(slash + 1) == latest) {
        auto const run = run_of(rest, rest_of.substr(0, slash));
        auto pending = rest.list_checkpoints(run);
        auto const page = pending.get();
        auto const newest = std::ranges::max_element(
            page.checkpoints, {}, [](Checkpoint const& one) { return one.time.time; });
        if (newest == page.checkpoints.end()) {
            throw not_there("the run " + run + " has no checkpoints");
        }
        return newest->tinker_path;
    }
    auto path = parse_checkpoint_path(written_path(given));
    path->training_run_id = run_of(rest, path->training_run_id);
    return to_string(*path);
}

}  // namespace tinkxx::cli
