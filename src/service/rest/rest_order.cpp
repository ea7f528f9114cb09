#include "service/rest/rest_order.hpp"

#include "service/http/http_order.hpp"
#include "service/session/session.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace tinkxx::service {
namespace {

constexpr std::string_view rest_root = "/api/v1/";

bool is_step(std::string_view part) noexcept { return part == "." || part == ".."; }

/// Whether a part of a path is empty, or leads elsewhere.
bool has_odd_parts(std::string_view id) noexcept {
    for (;;) {
        auto const slash = id.find('/');
        auto const part = id.substr(0, slash);
        if (part.empty() || is_step(part)) return true;
        if (slash == std::string_view::npos) return false;
        id.remove_prefix(slash + 1);
    }
}

}  // namespace

HttpOrder rest_order(ClientCore& ready, RestRequest request) {
    auto& http = ready.http();
    auto const& config = http.config();
    bool const reads = request.method == "GET";
    auto order = get_order(http, request.path, request.purpose);
    order.operation.method = std::move(request.method);
    order.operation.feature = std::move(request.feature);
    order.url = config.endpoint.url(request.path, config.default_query, request.query);
    if (!reads) order.common_headers = http.json_headers();
    if (!request.body.empty()) {
        order.body.tail = std::make_shared<std::string const>(std::move(request.body));
    }
    order.idempotency_key = std::move(request.idempotency_key);
    order.headers = std::move(request.headers);
    add_method(order, ready.session().config().sdk_version, request.sdk_method);
    return order;
}

std::string run_path(std::string_view run_id) {
    return std::string{rest_root} + "training_runs/" + std::string{run_id};
}

std::string checkpoint_path(std::string_view run_id, std::string_view checkpoint_id) {
    return run_path(run_id) + "/checkpoints/" + std::string{checkpoint_id};
}

std::optional<ErrorDetails> id_problem(std::string_view operation, std::string_view field,
                                       std::string_view id, int slashes) {
    auto const found = std::ranges::count(id, '/');
    bool const broken = std::ranges::any_of(id, [](char c) {
        return c == '?' || c == '#' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    });
    if (found <= slashes && !broken && !has_odd_parts(id)) return std::nullopt;
    std::string shown{id.substr(0, 200)};
    return ErrorDetails{
        .kind = ErrorKind::validation,
        .message = std::string{operation} + ": " + std::string{field} + " is \"" + shown +
                   "\"; give an id as the service has it, without empty parts, ?, # or .." +
                   (slashes == 0 ? " and without /" : ""),
        .category = ErrorCategory::user,
        .field = std::string{field},
        .value = std::move(shown)};
}

Result<NamedCheckpoint> named_checkpoint(std::string_view operation, CheckpointRef const& ref) {
    NamedCheckpoint named;
    if (ref.by_id()) {
        named.run = ref.training_run_id();
        named.id = ref.checkpoint_id();
    } else {
        auto path = parse_checkpoint_path(ref.path());
        if (!path) {
            auto details = path.error().details();
            details.message = with_operation(operation, details.message);
            return details;
        }
        named.run = path->training_run_id;
        named.id = path->checkpoint_id();
        named.path = *std::move(path);
    }
    if (auto problem = id_problem(operation, "training_run_id", named.run, 0)) return *problem;
    if (auto problem = id_problem(operation, "checkpoint_id", named.id, 1)) return *problem;
    return named;
}

}  // namespace tinkxx::service
