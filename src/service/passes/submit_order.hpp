#pragma once

#include <tinkxx/http.hpp>
#include <tinkxx/result.hpp>

#include "service/requests/service_request.hpp"
#include "wire/training/training.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::service {

/// A request that the service answers by a pending result, with everything decided.
struct SubmitOrder {
    /// Both point to text that stays.
    std::string_view path{};
    /// As R-FUT-01 lists them, e.g. `OptimStep`.
    std::string_view request_type{};
    std::shared_ptr<std::string const> body{};
    /// What the body says is its number. 0: it has none.
    std::int64_t seq_id{0};
    /// Writes the body again with another number. Empty if it has none.
    std::function<Result<std::string>(std::string const& body, std::int64_t seq_id)> renumber{};
    std::string_view content_type{"application/json"};
    /// Empty: none.
    std::string_view content_encoding{};
    /// The result may come as protobuf.
    bool protobuf_result{false};
    /// Estimate, for the budget of what is being submitted (R-TRAIN-33). 0: outside of it.
    std::int64_t bytes{0};
    Repeat repeat{Repeat::submit_loop};
    /// The client's retries of the HTTP call; otherwise none.
    bool http_retries{true};
    /// It changes the model: where a server would apply a repeat again, it is not repeated once it
    /// may have come to be applied (C-59).
    bool step{false};
    /// Of a forward or backward pass: how it is written. Empty: there is no choice.
    std::optional<wire::Encoding> encoding{};
    /// Something in the body that must not be shown; empty if there is nothing.
    std::string secret{};
    /// What a 404 means the server lacks; empty if it means nothing special.
    std::string_view feature{};
};

/// Gives the request a number, unless it has that already or needs none.
[[nodiscard]] inline Result<void> set_number(SubmitOrder& order, std::int64_t seq_id) {
    if (order.seq_id == 0 || order.seq_id == seq_id) return {};
    auto body = order.renumber(*order.body, seq_id);
    if (!body) return body.error();
    order.body = std::make_shared<std::string const>(*std::move(body));
    order.seq_id = seq_id;
    return {};
}

}  // namespace tinkxx::service
