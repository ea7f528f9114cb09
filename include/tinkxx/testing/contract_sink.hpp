#pragma once

#include <tinkxx/transport.hpp>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tinkxx::testing {

/// A sink that stores an answer and records every violation of the `ReplySink` contract, for tests
/// of a transport.
///
///     ContractSink sink;
///     sink.start(transport, {.url = "http://host/"});
///     …
///     EXPECT_TRUE(sink.ended());
///     EXPECT_THAT(sink.breaches(), IsEmpty());
///
/// Loop thread only. Must outlive its call.
class ContractSink final : public ReplySink {
public:
    /// Starts a call that is answered here; an answer before `start` returns is a violation.
    Call start(Transport& transport, Request request);
    /// Cancels the call; anything that arrives afterwards is a violation.
    void cancel(Transport& transport) noexcept;

    [[nodiscard]] Call call() const noexcept { return call_; }
    [[nodiscard]] bool ended() const noexcept { return ends_ > 0; }
    [[nodiscard]] bool succeeded() const noexcept { return ended() && !failure_; }
    [[nodiscard]] int status() const noexcept { return head_ ? head_->status : 0; }
    [[nodiscard]] std::optional<Head> const& head() const noexcept { return head_; }
    [[nodiscard]] std::string const& body() const noexcept { return body_; }
    [[nodiscard]] std::size_t pieces() const noexcept { return pieces_; }
    [[nodiscard]] std::optional<Failure> const& failure() const noexcept { return failure_; }
    [[nodiscard]] Timing const& timing() const noexcept { return timing_; }
    /// One sentence for each violation.
    [[nodiscard]] std::vector<std::string> const& breaches() const noexcept { return breaches_; }

    /// Called inside each callback, with its name: "head", "data", "done", "failure".
    std::function<void(std::string_view)> on_event{};

    void on_head(Head head) override;
    void on_data(std::span<char const> data) override;
    void on_done(Timing const& timing) override;
    void on_failure(Failure failure) override;

private:
    void check(std::string_view event);
    void tell(std::string_view event);

    Call call_{};
    bool starting_{false};
    bool cancelled_{false};
    int ends_{0};
    std::size_t pieces_{0};
    std::optional<Head> head_{};
    std::string body_{};
    std::optional<Failure> failure_{};
    Timing timing_{};
    std::vector<std::string> breaches_{};
};

}  // namespace tinkxx::testing
