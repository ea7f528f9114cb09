#pragma once

#include "local/api/handler.hpp"
#include "local/listen/limits.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tinkxx::local {

/// Why a request is not served.
struct Refusal {
    int status{400};
    std::string detail{};
};

/// `text` as it can stand in a message or a line of a log: printable ASCII, cut if it is long.
[[nodiscard]] std::string printable(std::string_view text, std::size_t most = 200);

/// "64 KiB".
[[nodiscard]] std::string quantity(std::size_t bytes);

/// Memory that a string takes beside itself.
[[nodiscard]] inline std::size_t memory_of(std::string const& text) noexcept {
    return text.capacity() > std::string{}.capacity() ? text.capacity() + 1 : 0;
}

/// Reads one HTTP/1.1 request from bytes that come in pieces of any size.
class RequestParser {
public:
    explicit RequestParser(ListenerLimits const& limits);
    RequestParser(RequestParser&&) noexcept;
    RequestParser& operator=(RequestParser&&) noexcept;
    ~RequestParser();

    enum class State : std::uint8_t {
        head,       ///< the head is not complete
        head_done,  ///< it is; whoever wants the rest says `go_on`
        body,
        complete,
        refused,  ///< nothing more can be read from this connection
    };

    /// Takes what it can of `bytes`, and says how much that was. What is left has to be given
    /// again, with more behind it, unless the state has changed.
    std::size_t feed(std::span<char const> bytes);
    void go_on() noexcept;

    [[nodiscard]] State state() const noexcept;
    /// Why, once refused.
    [[nodiscard]] Refusal const& refusal() const noexcept;
    /// With its body once complete. Its target begins with a slash, or is `*`; a host that the
    /// target named is the one in its headers.
    [[nodiscard]] ServerRequest const& request() const noexcept;
    /// The same, to keep. The parser holds nothing then.
    [[nodiscard]] ServerRequest take_request() noexcept;
    /// Memory that the request takes.
    [[nodiscard]] std::size_t held() const noexcept;
    /// At `head_done`.
    [[nodiscard]] bool has_body() const noexcept;
    [[nodiscard]] bool expects_continue() const noexcept;
    [[nodiscard]] bool keep_alive() const noexcept;
    [[nodiscard]] bool http_1_0() const noexcept;
    /// Of the body, if the head told.
    [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

/// "Not Found" for 404.
[[nodiscard]] std::string_view reason_of(int status) noexcept;

}  // namespace tinkxx::local
