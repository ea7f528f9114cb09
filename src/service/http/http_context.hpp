#pragma once

#include <tinkxx/http.hpp>
#include <tinkxx/log.hpp>
#include <tinkxx/observer.hpp>
#include <tinkxx/transport.hpp>

#include "base/common/intrusive_list.hpp"
#include "base/runtime/runtime_core.hpp"
#include "service/common/random.hpp"
#include "service/common/thrown.hpp"
#include "service/http/client_config.hpp"
#include "service/http/credentials.hpp"
#include "service/http/deprecation_notes.hpp"
#include "service/http/http_retry.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::service {

/// Its place among the calls of a context that are under way.
struct OpenCall {
    base::ListLinks<OpenCall> links{};
};

/// What all HTTP calls of one client share. Made on any thread; then, but for what says
/// otherwise, for the loop thread only. Held by a `std::shared_ptr`.
class HttpContext final : public std::enable_shared_from_this<HttpContext>,
                          private detail::Resident {
public:
    HttpContext(std::shared_ptr<ClientConfig const> config,
                std::shared_ptr<detail::RuntimeCore> runtime, std::shared_ptr<Transport> transport,
                std::shared_ptr<CredentialSource> credentials);
    ~HttpContext() override;

    /// Any thread.
    [[nodiscard]] ClientConfig const& config() const noexcept { return *config_; }
    [[nodiscard]] detail::RuntimeCore& runtime() const noexcept { return *runtime_; }
    [[nodiscard]] Scheduler& scheduler() const noexcept { return runtime_->scheduler(); }
    [[nodiscard]] Transport& transport() const noexcept { return *transport_; }
    [[nodiscard]] CredentialSource& credentials() const noexcept { return *credentials_; }
    /// Lines for requests without a body, and the same with a JSON content type. Any thread.
    [[nodiscard]] std::shared_ptr<Headers const> const& headers() const noexcept {
        return headers_;
    }
    [[nodiscard]] std::shared_ptr<Headers const> const& json_headers() const noexcept {
        return json_headers_;
    }
    /// `common` with the lines that every first attempt has: its read timeout (none if zero), its
    /// number, and the credential (none if null). Made once for each combination in use, so that a
    /// request costs no lines of its own for them.
    [[nodiscard]] std::shared_ptr<Headers const> const& first_attempt_headers(
        std::shared_ptr<Headers const> const& common, std::chrono::milliseconds read_timeout,
        Credential const& credential);
    /// Lines for requests to somebody else: who we are, and nothing of the caller's. Any thread.
    [[nodiscard]] std::shared_ptr<Headers const> const& foreign_headers() const noexcept {
        return foreign_headers_;
    }

    [[nodiscard]] RejectionBudget& rejections() noexcept { return rejections_; }
    [[nodiscard]] double chance();
    /// `stainless-cpp-retry-<uuid>`, random.
    [[nodiscard]] std::string new_idempotency_key();

    /// Hands a line, free of secrets, to the client's log. Any thread.
    void log(LogLevel level, std::string_view line) const;
    [[nodiscard]] bool logs(LogLevel level) const noexcept;
    void note_deprecation(Operation const& operation, Headers const& headers);
    /// Whether every request and answer is shown; `scrubber` knows what must not be.
    [[nodiscard]] bool dumps() const noexcept { return config_->dump_headers.value_or(false); }
    void dump(Operation const& operation, Request const& request, Scrubber const& scrubber) const;
    void dump(Operation const& operation, Head const& head, std::string_view body,
              Scrubber const& scrubber) const;

    [[nodiscard]] bool observed() const noexcept { return !config_->observers.empty(); }
    /// Calls `member` of every observer with `event`, on the callback executor.
    template <class Event>
    void tell(void (Observer::*member)(Event const&), Event event) const;
    /// As above, at once: for those who are on the callback executor.
    template <class Event>
    void tell_here(void (Observer::*member)(Event const&), Event const& event) const;

    /// Has `fn`, which a caller gave, called on the callback executor. What it throws is logged,
    /// and said of `whose` ("an observer"), which stays. Any thread.
    template <class Fn>
    void call_back(std::string_view whose, LogLevel level, Fn fn) const;
    /// As above, at once: for those who are on the callback executor.
    template <class Fn>
    void call_here(std::string_view whose, LogLevel level, Fn const& fn) const;

    /// An empty text with room for an answer of so many bytes: one that was given back, if it is
    /// not much too large, since that is still in the caches.
    [[nodiscard]] std::string take_text(std::size_t bytes);
    void give_text(std::string&& text) noexcept;

    /// Its calls are what callers wait for, and not steps of something else. Before the first.
    void speak_for_calls() noexcept { speaks_for_calls_ = true; }
    /// Ends all calls with a cancellation error, and every later one too.
    void close() noexcept;
    /// Whether calls can be made: false once closed or the runtime shuts down.
    [[nodiscard]] bool usable();
    [[nodiscard]] std::size_t open_calls() const noexcept { return calls_.size(); }

private:
    friend class HttpCall;
    void on_shutdown() noexcept override;
    [[nodiscard]] std::size_t calls_under_way() const noexcept override;
    Random& random();
    void write(LogLevel level, std::string line) const;
    void write_dump(std::string line) const;

    std::shared_ptr<ClientConfig const> const config_;
    std::shared_ptr<detail::RuntimeCore> const runtime_;
    std::shared_ptr<Transport> const transport_;
    std::shared_ptr<CredentialSource> const credentials_;
    std::shared_ptr<Headers const> headers_;
    std::shared_ptr<Headers const> json_headers_;
    std::shared_ptr<Headers const> foreign_headers_;

    struct FirstAttempt {
        std::shared_ptr<Headers const> common{};
        std::chrono::milliseconds read_timeout{};
        Credential credential{};
        std::shared_ptr<Headers const> headers{};
    };
    std::array<FirstAttempt, 8> first_attempts_{};
    std::size_t oldest_first_attempt_{0};

    std::array<std::string, 4> texts_{};
    std::size_t texts_kept_{0};
    RejectionBudget rejections_{};
    DeprecationNotes notes_{};
    std::optional<Random> random_{};
    base::IntrusiveList<OpenCall, &OpenCall::links> calls_{};  ///< each is an `HttpCall`
    bool resident_{false};
    bool speaks_for_calls_{false};
    bool closed_{false};
};

template <class Event>
void HttpContext::tell(void (Observer::*member)(Event const&), Event event) const {
    if (config_->observers.empty()) return;
    runtime_->run_callback([self = shared_from_this(), member, event = std::move(event)] {
        self->tell_here(member, event);
    });
}

template <class Event>
void HttpContext::tell_here(void (Observer::*member)(Event const&), Event const& event) const {
    for (auto const& observer : config_->observers) {
        call_here("an observer", LogLevel::error, [&] { (observer.get()->*member)(event); });
    }
}

template <class Fn>
void HttpContext::call_back(std::string_view whose, LogLevel level, Fn fn) const {
    runtime_->run_callback([self = shared_from_this(), whose, level, fn = std::move(fn)] {
        self->call_here(whose, level, fn);
    });
}

template <class Fn>
void HttpContext::call_here(std::string_view whose, LogLevel level, Fn const& fn) const {
    try {
        fn();
    } catch (...) {
        log(level, std::string{whose} + ' ' + threw());
    }
}

}  // namespace tinkxx::service
