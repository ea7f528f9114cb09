#pragma once

#include "support/servers/script_server.hpp"

#include <tinkxx/transport.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::test {

/// A request as a server got it, of either protocol.
struct ReceivedRequest {
    std::string method{};
    std::string target{};
    Headers headers{};
    std::string body{};
    int connection{0};  ///< which of the server's connections it came on, from 0

    /// The value of a header, or empty.
    [[nodiscard]] std::string header(std::string_view name) const;
};

/// What to answer.
struct ScriptedAnswer {
    int status{200};
    Headers headers{};
    std::string body{};
};

/// Takes the head of a request (everything before the blank line) apart.
[[nodiscard]] ReceivedRequest parse_request_head(std::string_view head);
/// The whole body, if all of it is in `bytes` from `at` on, whose end is then stored in `at`:
/// by Content-Length, chunked, or empty.
[[nodiscard]] std::optional<std::string> parse_request_body(ReceivedRequest const& request,
                                                            std::string_view bytes,
                                                            std::size_t& at);

/// Reads one request with its body. Empty if the peer closed in place of sending one.
[[nodiscard]] std::optional<ReceivedRequest> read_request(Wire& wire);

/// The text of an HTTP/1.1 answer with its Content-Length.
[[nodiscard]] std::string http1_answer(ScriptedAnswer const& answer);
/// The same in chunks of `size`.
[[nodiscard]] std::string http1_chunked_answer(ScriptedAnswer const& answer, std::size_t size);

/// A script that reads requests and answers each with `text`, until the peer closes.
[[nodiscard]] ScriptServer::Script always_answer(std::string text);

/// `size` bytes that repeat only after a long way, so that a shift or a gap shows.
[[nodiscard]] std::string pattern(std::size_t size, unsigned seed = 0);
[[nodiscard]] std::string gzip(std::string_view plain);
[[nodiscard]] std::string zstd(std::string_view plain);

}  // namespace tinkxx::test
