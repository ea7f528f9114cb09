#pragma once

#include "base/common/intrusive_list.hpp"
#include "base/loop/destruction_flag.hpp"
#include "service/http/http_call.hpp"
#include "service/results/completion_machine.hpp"
#include "service/results/result_poll.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tinkxx::service {

class CompletionPoll;

/// What a completion poll has to say about one sample.
struct Completed {
    enum class How : std::uint8_t {
        finished,
        failed,           ///< its failure is there to be fetched
        poll_yourselves,  ///< nothing is known: the completion poll does not work here (R-FUT-66)
    };
    How how{How::finished};
    /// Of the result; 0 if not told.
    std::int64_t payload_bytes{0};
};

/// Waits for the completion of one sample. Destroying it forgets. Loop thread only.
class CompletionWaiter {
public:
    CompletionWaiter() noexcept = default;
    CompletionWaiter(CompletionWaiter const&) = delete;
    CompletionWaiter& operator=(CompletionWaiter const&) = delete;

    /// Never from inside `wait`. May destroy the waiter and the poll.
    virtual void on_completion(Completed completed) = 0;

protected:
    virtual ~CompletionWaiter();

private:
    friend class CompletionPoll;
    CompletionPoll* poll_{nullptr};
    base::ListLinks<CompletionWaiter> links_{};
    std::string request_id_{};
    std::optional<Completed> completed_{};  ///< to be told
};

/// Asks for all samples of one sampler together which of them are done (R-FUT-60 … R-FUT-67).
///
/// It polls only while a sample waits or a fetched result is unreported. Loop thread only;
/// destroying it ends its poll, and those who wait are not told.
class CompletionPoll final : private HttpCall::Listener, private Timer, private CloseListener {
public:
    /// Completions that nobody claimed yet are kept, up to so many.
    static constexpr std::size_t most_unclaimed = 100'000;
    /// Polls that bring nothing new begin this far apart.
    static constexpr std::chrono::milliseconds spacing{100};

    CompletionPoll(ResultSurroundings const& around, std::string sampling_session_id,
                   std::int64_t clone_id);
    ~CompletionPoll() override;

    /// `waiter` is told when the sample is done; from the loop, also if it is done already.
    void wait(CompletionWaiter& waiter, std::string_view request_id);
    /// `waiter` is not told any more. Harmless if it does not wait here.
    void forget(CompletionWaiter& waiter) noexcept;
    /// A result, or its failure, was fetched: the server may forget it (R-FUT-64).
    void retrieved(std::string_view request_id);

    /// False once it has given up.
    [[nodiscard]] bool works() const noexcept { return !given_up_; }
    [[nodiscard]] std::size_t waiting() const noexcept { return waiters_.size(); }
    [[nodiscard]] std::size_t unclaimed() const noexcept { return unclaimed_.size(); }
    [[nodiscard]] bool polling() const noexcept { return http_.under_way(); }
    [[nodiscard]] std::int64_t cursor() const noexcept { return machine_.cursor(); }
    /// The last poll failed.
    [[nodiscard]] bool failing() const noexcept { return !failure_.empty(); }
    /// What those who wait wait for, in words.
    [[nodiscard]] std::string standing() const;
    /// Since when every poll failed; empty if the last one did not.
    [[nodiscard]] std::optional<TimePoint> failing_since() const noexcept {
        return failure_.empty() ? std::nullopt : std::optional{failing_since_};
    }

private:
    struct Unclaimed {
        std::string request_id{};
        Completed completed{};
    };
    using List = base::IntrusiveList<CompletionWaiter, &CompletionWaiter::links_>;

    void on_response(HttpResponse response) override;
    void on_error(Error error) override;
    void on_time() override;
    void on_closing() noexcept override;

    void record(std::string request_id, Completed completed);
    void finish(CompletionWaiter& waiter, Completed completed) noexcept;
    void follow(CompletionMachine::Action const& action, Error const& error);
    void give_up(Error const& error);
    [[nodiscard]] bool needed() const noexcept;
    void go_on();
    void send();
    void tell();

    ResultSurroundings const* around_;
    std::string session_id_;
    std::int64_t clone_id_;
    HttpCall http_;
    CompletionMachine machine_{};
    List waiters_{};  ///< in the order of their arrival
    List done_{};     ///< waiters that are to be told
    std::unordered_map<std::string_view, CompletionWaiter*> by_id_{};
    std::list<Unclaimed> unclaimed_{};  ///< oldest first
    std::unordered_map<std::string_view, std::list<Unclaimed>::iterator> unclaimed_by_id_{};
    TimePoint not_before_{};  ///< of the next poll
    std::string failure_{};   ///< of the last poll; empty if it went well
    TimePoint failing_since_{};
    bool given_up_{false};
    base::DestructionFlag destroyed_{};  ///< by those whom `tell` tells
};

}  // namespace tinkxx::service
