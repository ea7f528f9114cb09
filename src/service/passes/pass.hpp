#pragma once

#include <tinkxx/status.hpp>

#include "service/core/encoding_choice.hpp"
#include "service/passes/chunk_order.hpp"
#include "service/passes/submission.hpp"
#include "service/passes/turns.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx::service {

/// What one call submits.
struct PassPlan {
    /// Names the call for those who wait behind it.
    std::string name{};
    /// Empty: it needs no turn.
    Ticket ticket{};
    /// In the order of their ids, at least one.
    std::vector<SubmitOrder> submits{};
    /// Whether they go at once, the first one last.
    bool parallel{false};
    /// What is known about the server; null if that does not matter.
    std::shared_ptr<EncodingChoice> encodings{};
    /// Writes a submit anew, on the callback executor, where its encoding is a matter of trying.
    std::function<Result<SubmitOrder>(std::size_t submit, wire::Encoding, std::int64_t seq_id)>
        recode{};
    /// Asked before each request. Empty: none.
    std::optional<CircuitBreaker> breaker{};
    /// For each request of it.
    Headers headers{};
    Metadata metadata{};
};

/// Takes the submits of one call through their turn, and waits for all results: a member of the
/// call that needs them. May be started again once it is over.
///
/// Loop thread only. Destroying it cancels, and yields its turn.
class Pass final : private TurnWaiter, private Submission::Listener {
public:
    /// Told exactly one of the first two, never from inside `start` or `cancel`. Inside them the
    /// pass may be destroyed or started again.
    class Listener {
    public:
        /// In the order of the submits.
        virtual void on_results(std::vector<RetrievedResult> results) = 0;
        /// The first failure; the other submits are cancelled (R-FUT-50).
        virtual void on_error(Error error) = 0;
        virtual void on_queue_state(Submission const& of, QueueState state,
                                    std::string const& reason) = 0;
        /// To be looked at, and nothing else. Also from inside `start`.
        virtual void on_standing() = 0;

    protected:
        ~Listener() = default;
    };

    Pass(ClientCore& core, Listener& listener) noexcept : core_{&core}, listener_{&listener} {}
    ~Pass() override { cancel(); }

    void start(PassPlan plan);
    /// Ends it without a word to the listener. Harmless if none is under way.
    void cancel() noexcept;
    /// It has taken too long and is about to be cancelled, which may be the service's fault.
    void out_of_time(Error const& error) noexcept;

    [[nodiscard]] Stage stage() const noexcept;
    void describe(OperationStatus& status, TimePoint now) const;

private:
    struct Recoding;

    void on_turn() override;
    void on_accepted(Submission& from) override;
    void on_refused(Submission& from, Error error) override;
    void on_result(Submission& from, RetrievedResult result) override;
    void on_failed(Submission& from, Error error) override;
    void on_queue_state(Submission& from, QueueState state, std::string const& reason) override;
    void on_standing() override { listener_->on_standing(); }

    void settle();
    void settle_with(SubmitOrder const& order, Submission::Judgement judgement);
    void settle_as(wire::Encoding encoding, std::optional<Error> refusal);
    void settle_recoded(Recoding const& job);
    void settle_refused(Error error);
    void begin();
    void submit(std::size_t index);
    /// Leaves numbers to whoever is next, but for those that the service has or may have.
    void leave_turn() noexcept;
    [[nodiscard]] Submission::Judgement judgement(SubmitOrder const& order) const;
    void recode(std::size_t index, wire::Encoding encoding, std::optional<Error> refusal);
    void write_anew(std::shared_ptr<Recoding> const& job);
    void refuse_later(std::size_t index, Error const& error);
    void recoded(Recoding& job);
    void fail(Error error);
    /// The submission that says most about where the pass stands, or null.
    [[nodiscard]] Submission const* shown() const noexcept;

    ClientCore* const core_;
    Pass::Listener* const listener_;
    PassPlan plan_{};
    std::shared_ptr<RequestExtras const> extras_{};
    std::optional<ChunkOrder> order_{};
    bool waits_for_turn_{false};
    /// A request of an earlier call, which the service may have or not.
    std::unique_ptr<Submission> settling_{};
    /// What was said to it in the encoding in which it was sent first, once it is sent in the
    /// other.
    std::optional<Error> settle_refusal_{};
    std::vector<std::unique_ptr<Submission>> submissions_{};
    std::vector<std::optional<RetrievedResult>> results_{};
    std::size_t results_left_{0};
    /// Refusals of what is tried in another encoding, by submit.
    std::vector<std::optional<Error>> refusals_{};
    /// What was tried in another encoding before, and may have arrived in it, by submit.
    std::vector<std::optional<SubmitOrder>> doubted_{};
    std::vector<std::shared_ptr<Recoding>> recodings_{};
};

}  // namespace tinkxx::service
