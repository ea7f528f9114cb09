#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/transport.hpp>

#include "service/text/scrubber.hpp"

#include <string>
#include <string_view>

namespace tinkxx::service {

/// Names a call in messages.
struct Operation {
    std::string method{};
    /// Without a query, which may hold secrets.
    std::string path{};
    /// What a 404 or 405 means the server lacks (R-ERR-05); empty if it means nothing special.
    std::string feature{};

    [[nodiscard]] std::string name() const { return method + ' ' + path; }
};

/// Text from outside as one line: messages are lines of a log, and an HTML page, or a body made to
/// look like one, must not break it.
[[nodiscard]] std::string one_line(std::string_view text);

/// The beginning of a text, without half a UTF-8 character at its end.
[[nodiscard]] std::string_view cut(std::string_view text, std::size_t most) noexcept;

/// `operation: message`, or the message alone if it begins with that: an error passes layers that
/// each want to see the operation named.
[[nodiscard]] std::string with_operation(std::string_view operation, std::string_view message);

/// Longest part of a body that an error keeps.
inline constexpr std::size_t error_body_bytes = 4096;

[[nodiscard]] bool is_success(int status) noexcept;
/// "unauthorized"; empty for a status without a common name.
[[nodiscard]] std::string_view reason_phrase(int status) noexcept;
/// Statuses that may go away by themselves: 408, 409, 429 and all from 500.
[[nodiscard]] bool is_passing(int status) noexcept;
/// Whether an answer is a 500 with a plain text: by that an old server says that it cannot read a
/// body (R-WIRE-10).
[[nodiscard]] bool is_plain_500(int status, Headers const& headers) noexcept;
/// R-ERR-03: 429 and 5xx are the server's, other 4xx the user's.
[[nodiscard]] ErrorCategory category_of(int status) noexcept;

/// The error that a status other than 2xx means.
[[nodiscard]] ErrorDetails status_error(Operation const& operation, Head const& head,
                                        std::string_view body, WallTime now,
                                        Scrubber const& scrubber);
/// The error that a missing answer means.
[[nodiscard]] ErrorDetails failure_error(Operation const& operation, Failure const& failure,
                                         Scrubber const& scrubber);
/// Whether no answer came and none will, however often and late it is asked again: no layer of
/// retries repeats a call after such an error, whatever its own rules say.
[[nodiscard]] bool cannot_heal(Error const& error) noexcept;
/// The error that a 400 without a body means: a proxy does not like the connection (R-RETRY-75).
[[nodiscard]] ErrorDetails rejection_error(Operation const& operation);

}  // namespace tinkxx::service
