#pragma once

#include <tinkxx/transport.hpp>

#include "local/api/body.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace tinkxx::local {

/// A request as the server's core sees it, whichever way it came.
struct ServerRequest {
    std::string method{};
    /// Path and query, as sent: `/api/v1/samplers/x?limit=10`.
    std::string target{};
    Headers headers{};
    /// Complete; still compressed if a `Content-Encoding` says so.
    RequestBody body{};
};

/// Where the answer to one request goes: `head`, any number of `data`, then `done`. Dropped before
/// `done`: the request failed, and its connection is closed. Loop thread.
class Answer {
public:
    virtual ~Answer() = default;
    /// `length`: of the body, if it is known; otherwise it ends with `done`.
    virtual void head(int status, Headers headers, std::optional<std::size_t> length) = 0;
    virtual void data(std::string bytes) = 0;
    virtual void done() = 0;
    /// Bytes given and not yet taken by the peer; whoever streams waits while there are many.
    [[nodiscard]] virtual std::size_t pending() const noexcept = 0;
    /// Called once, when the peer is gone before `done`; the answer may be dropped then.
    virtual void on_gone(Task task) = 0;
    /// Called once, when `pending` has fallen to zero.
    virtual void on_drained(Task task) = 0;
};

/// What stands behind a listener, or behind a transport within the process. Loop thread.
class Handler {
public:
    virtual ~Handler() = default;
    /// Answers now or later.
    virtual void handle(ServerRequest request, std::shared_ptr<Answer> answer) = 0;
};

}  // namespace tinkxx::local
