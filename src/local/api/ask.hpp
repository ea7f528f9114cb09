#pragma once

#include <tinkxx/result.hpp>

#include "local/api/handler.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::local {

/// Thrown by an endpoint instead of an answer; caught where requests are dispatched, nowhere else.
struct Refused {
    int status{400};
    std::string detail{};
    std::optional<std::chrono::milliseconds> retry_after{};
};

/// A request on its way through its endpoint.
struct Ask {
    ServerRequest request{};
    /// The last words of its path, such as `create_model`; for messages.
    std::string_view operation{};
    /// What stood for the names in the pattern of its path, decoded.
    std::vector<std::string> names{};
    /// Decoded; the last of several of one name.
    std::map<std::string, std::string, std::less<>> query{};
    std::shared_ptr<Answer> answer{};

    /// The parameter, or `otherwise` if it is missing.
    [[nodiscard]] std::string parameter(std::string_view name, std::string_view otherwise) const {
        auto const found = query.find(name);
        return std::string{found == query.end() ? otherwise : std::string_view{found->second}};
    }
    /// As above, a number of at least `least`.
    [[nodiscard]] std::int64_t number(std::string_view name, std::int64_t otherwise,
                                      std::int64_t least, std::int64_t most) const;
    /// The value of a header line; empty if there is none.
    [[nodiscard]] std::string_view header(std::string_view name) const noexcept {
        auto const* const found = request.headers.find(name);
        return found == nullptr ? std::string_view{} : std::string_view{*found};
    }
};

void send_json(Answer& answer, int status, std::string body);
void send_json(Answer& answer, std::string body);
void send_bytes(Answer& answer, int status, std::string_view content_type, std::string body);
/// An answer that says no more than that it was done.
void send_nothing(Answer& answer);
void send_refusal(Answer& answer, Refused const& refused);
/// What to say when the store failed.
[[nodiscard]] Refused not_written(std::string_view operation, Error const& why);

/// The value, or a refusal with the error's message.
template <class T>
[[nodiscard]] T good(Result<T> result, int status = 400) {
    if (!result) throw Refused{status, result.error().what()};
    return *std::move(result);
}

}  // namespace tinkxx::local
