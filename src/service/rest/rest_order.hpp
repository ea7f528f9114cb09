#pragma once

#include <tinkxx/query.hpp>
#include <tinkxx/transport.hpp>
#include <tinkxx/types/checkpoint.hpp>

#include "service/core/client_core.hpp"
#include "service/http/http_call.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::service {

/// A REST request but for what all of a client have in common.
struct RestRequest {
    std::string method{"GET"};
    std::string path{};
    Query query{};
    std::string body{};
    /// The official name of the method (R-REST-02).
    std::string_view sdk_method{};
    /// Lines of the caller's trace, and of this call.
    Headers headers{};
    Purpose purpose{Purpose::train};
    /// Empty: made for every method but GET.
    std::optional<std::string> idempotency_key{};
    /// What a server lacks that answers 404 or 405 to it; empty: that says nothing.
    std::string feature{};
};

/// With the settings of a client. Once its session is ready.
[[nodiscard]] HttpOrder rest_order(ClientCore& ready, RestRequest request);

/// Where things are: below `/api/v1/`, with an id that `path_problem` has nothing against.
[[nodiscard]] std::string run_path(std::string_view run_id);
[[nodiscard]] std::string checkpoint_path(std::string_view run_id, std::string_view checkpoint_id);

/// Why a text cannot be an id within a path, or nothing. `slashes`: how many it may have.
[[nodiscard]] std::optional<ErrorDetails> id_problem(std::string_view operation,
                                                     std::string_view field, std::string_view id,
                                                     int slashes);

/// A checkpoint that was named in one way or the other, or why it was not.
struct NamedCheckpoint {
    std::string run{};
    /// Within the run.
    std::string id{};
    /// Empty if it was named by ids.
    std::optional<CheckpointPath> path{};
};
[[nodiscard]] Result<NamedCheckpoint> named_checkpoint(std::string_view operation,
                                                       CheckpointRef const& ref);

}  // namespace tinkxx::service
