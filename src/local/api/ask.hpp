#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/log.hpp>

#include "local/api/handler.hpp"
#include "local/api/outcome.hpp"

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::local {

/// Which rows of a list are asked for.
struct Page {
    std::int64_t offset{0};
    std::int64_t limit{0};
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
    [[nodiscard]] Outcome<std::int64_t> number(std::string_view name, std::int64_t otherwise,
                                               std::int64_t least, std::int64_t most) const;
    /// The parameters `limit` and `offset`.
    [[nodiscard]] Outcome<Page> page(std::int64_t limit) const;
    /// The value of a header line; empty if there is none.
    [[nodiscard]] std::string_view header(std::string_view name) const noexcept {
        auto const* const found = request.headers.find(name);
        return found == nullptr ? std::string_view{} : std::string_view{*found};
    }
    /// Under which the client has reached this server.
    [[nodiscard]] std::string base_url() const;
};

void send_json(Answer& answer, int status, std::string body);
void send_json(Answer& answer, std::string body);
void send_bytes(Answer& answer, int status, std::string_view content_type, std::string body);
/// An answer that says no more than that it was done.
void send_nothing(Answer& answer);
void send_refusal(Answer& answer, Refused const& refused);
/// What to say when the store failed.
[[nodiscard]] Refused not_written(std::string_view operation, Error const& why);

/// Answers a request whose endpoint threw: there is no memory, or something is wrong with the
/// server.
void send_failure(Ask& ask, LogSink const& log, std::exception_ptr const& failure);

/// Runs a part of an endpoint, which returns a `MaybeRefused`, and sends the refusal if there is
/// one.
template <class Fn>
void run_endpoint(Ask& ask, LogSink const& log, Fn const& part) {
    try {
        MaybeRefused const no = part();
        if (no && ask.answer) send_refusal(*ask.answer, *no);
    } catch (...) {
        send_failure(ask, log, std::current_exception());
    }
}

}  // namespace tinkxx::local
