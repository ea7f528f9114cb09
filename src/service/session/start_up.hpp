#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/transport.hpp>

#include "service/requests/service_request.hpp"
#include "wire/session/service_messages.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::service {

/// Asked at the start, and every so often afterwards.
inline constexpr std::string_view dynamic_config_path = "/api/v1/client/dynamic_config";

/// What a session is for.
enum class SessionKind : std::uint8_t {
    session,      ///< training and sampling
    sessionless,  ///< lookups and administration
    shadow,       ///< sampling in a session that another process made
};

/// What one session knows that another can go on from.
struct SessionSnapshot {
    std::string session_id{};
    wire::ClientFlags flags{};
    wire::DynamicFlags dynamic{};

    bool operator==(SessionSnapshot const&) const = default;
};

/// Decides which request follows in a session's start-up (R-CONF-41), and what its answer means.
/// Touches no socket and reads no clock. What an answer has told is kept: a start-up that failed
/// goes on from the step that did.
class StartUp {
public:
    enum class Step : std::uint8_t {
        client_config,
        dynamic_config,  ///< and, inside it, the first exchange of the credential (R-AUTH-17)
        session,
        done,
    };
    /// How the request of a step is made.
    struct Order {
        std::string_view path{};
        std::string body{};
        Purpose purpose{Purpose::session};
        Repeat repeat{Repeat::once};
        /// The client's retries; otherwise none.
        bool http_retries{true};
        /// For each phase; 0: the client's.
        std::chrono::milliseconds timeout{0};
    };
    static constexpr std::chrono::seconds dynamic_timeout{10};

    StartUp(SessionKind kind, wire::CreateSession session);
    /// Of a shadow: there is nothing left to do.
    explicit StartUp(SessionSnapshot const& snapshot);

    [[nodiscard]] Step step() const noexcept { return step_; }
    /// Of the current step, which is not `done`.
    [[nodiscard]] Order order() const;
    /// The answer to it, a success. Goes to the next step, or says why not.
    [[nodiscard]] std::optional<ErrorDetails> on_answer(std::string_view body);
    /// It failed. Goes to the next step where a server without that endpoint is no failure
    /// (R-CONF-20, R-CONF-30), and then says what to log; otherwise the error stands.
    [[nodiscard]] std::optional<std::string> on_error(Error const& error);

    [[nodiscard]] wire::ClientFlags const& flags() const noexcept { return flags_; }
    [[nodiscard]] wire::DynamicFlags const& dynamic() const noexcept { return dynamic_; }
    [[nodiscard]] std::string const& session_id() const noexcept { return session_.session_id; }
    /// Whether the server has no client configuration to give.
    [[nodiscard]] bool without_config() const noexcept { return without_config_; }
    [[nodiscard]] wire::SessionCreated const& session() const noexcept { return session_; }

private:
    void advance() noexcept;

    SessionKind kind_;
    Step step_{Step::client_config};
    wire::CreateSession request_{};
    wire::ClientFlags flags_{};
    wire::DynamicFlags dynamic_{};
    wire::SessionCreated session_{};
    bool without_config_{false};
};

/// `client config`, `dynamic config`, `session`.
[[nodiscard]] std::string_view to_string(StartUp::Step step) noexcept;

}  // namespace tinkxx::service
