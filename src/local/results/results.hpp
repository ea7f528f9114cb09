#pragma once

#include <tinkxx/error.hpp>

#include "local/api/ask.hpp"
#include "local/store/rows.hpp"
#include "local/store/store.hpp"
#include "wire/server/requests.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::local {

/// Copies of a sampling client count their samples from multiples of this.
inline constexpr std::int64_t clone_stride = 1'000'000'000;

/// The form of a result: JSON, or protobuf that is turned into JSON for those who want that.
enum class Form : std::uint8_t { json, sample, forward_backward };

struct ResultsOptions {
    std::chrono::milliseconds poll_hold{std::chrono::seconds{40}};
    std::chrono::milliseconds completion_hold{std::chrono::seconds{30}};
    std::size_t inline_result_bytes{std::size_t{1} << 20U};
    std::chrono::seconds fetched_keep{120};
    std::chrono::seconds unfetched_keep{std::chrono::hours{24}};
    std::size_t fetched_bytes{std::size_t{128} << 20U};
    /// Of results that are kept in memory; others are read from the store.
    std::size_t memory_bytes{std::size_t{256} << 20U};
    /// Results that were not fetched, and that were; the oldest are forgotten.
    std::size_t most{100'000};
    /// A larger result is turned into JSON by somebody else than the loop.
    std::size_t loop_bytes{std::size_t{32} << 10U};
};

/// Why a request has to wait, for those who ask for its result.
struct QueueNote {
    /// `active`, `paused_capacity` or `paused_rate_limit`.
    std::string_view state{"active"};
    std::string reason{};
};

/// Results of requests: pending ones, and those that are kept until they are fetched.
/// A result can be asked for once it is safe in the store. Loop thread.
class Results {
public:
    /// A result that takes more is encoded off the loop.
    static constexpr std::size_t on_loop = std::size_t{64} << 10U;

    Results(Scheduler& scheduler, Store& store, ResultsOptions options);
    ~Results();
    Results(Results const&) = delete;
    Results& operator=(Results const&) = delete;

    /// Who knows what a request waits for; asked when a poll ends without a result.
    std::function<QueueNote(std::string const& id)> why_waiting{};
    /// Whether a request of that id could once have been accepted.
    std::function<bool(std::string const& id)> plausible{};
    /// Told of a result that is kept no longer.
    std::function<void(std::string const& id)> forgotten{};
    /// Does `work` off the loop, then `done` on it.
    std::function<void(Task work, Task done)> elsewhere{};

    /// A result that is to come.
    void add(std::string id, Form form, std::string owner);
    /// As above; `row`, a `RequestRow` with what was asked, is written down so that it can be
    /// computed after a restart. `accepted` is told once that is safe, or why it is not: then
    /// there is no such result any more.
    void add_sample(std::string id, std::string owner, std::int64_t clone, std::string row,
                    Store::Written accepted);
    /// Tells `accepted` of a result that was added before, now or when it is safe.
    void when_accepted(std::string const& id, Store::Written accepted);
    /// A result, pending or not, of an earlier life of the server.
    void restore(RequestRow const& row);

    [[nodiscard]] bool contains(std::string const& id) const { return results_.contains(id); }
    /// Whether it is a sample that is not done.
    [[nodiscard]] bool pending_sample(std::string const& id) const;
    [[nodiscard]] std::size_t pending_count() const noexcept { return pending_; }
    [[nodiscard]] std::size_t pending_samples() const noexcept { return pending_samples_; }
    /// Results that are kept, wherever they are.
    [[nodiscard]] std::size_t kept() const noexcept { return results_.size() - pending_; }
    /// Bytes of results in memory.
    [[nodiscard]] std::size_t memory_bytes() const noexcept { return memory_bytes_; }

    /// Stores the result of a request; `more` is committed with it. The result is given out after
    /// the commit. If the store fails, it is tried again every second, and polls say why.
    void complete(std::string const& id, std::string payload, std::vector<Change> more);
    /// As above. `done` is told once whether the first attempt was safe.
    void fail(std::string const& id, std::string error, ErrorCategory category,
              Store::Written done = {});

    [[nodiscard]] MaybeRefused retrieve(wire::server::RetrieveFuture const& ask, bool protobuf,
                                        std::shared_ptr<Answer> const& answer);
    void completions(wire::server::RetrieveFutures const& ask,
                     std::shared_ptr<Answer> const& answer);
    /// Polls that wait.
    [[nodiscard]] std::size_t waiting() const noexcept { return waiting_; }

    /// Forgets what was kept long enough.
    void sweep();

private:
    class Poll;
    class CompletionPoll;
    class Again;

    enum class State : std::uint8_t { pending, settling, done, failed };
    struct PendingResult {
        std::string id{};
        Form form{Form::json};
        std::string owner{};
        std::int64_t clone{0};
        State state{State::pending};
        /// Not there if the result is in the store only.
        std::shared_ptr<std::string const> payload{};
        /// Who waits for it to be accepted; none once it is.
        std::optional<std::vector<Store::Written>> unaccepted{};
        /// Why the result could not be written yet.
        std::string unsaved{};
        std::size_t size{0};
        std::string error{};
        std::string category{};
        TimePoint settled{};
        std::optional<TimePoint> fetched{};
        std::vector<std::shared_ptr<Poll>> polls{};
    };
    struct Stream {
        /// What is done and still kept, each with its cursor, which only grows.
        std::deque<std::pair<std::int64_t, std::string>> done{};
        /// Of those, how many are kept no longer.
        std::size_t gone{0};
        std::vector<std::shared_ptr<CompletionPoll>> polls{};
    };
    using StreamKey = std::pair<std::string, std::int64_t>;

    [[nodiscard]] static RequestRow row_of(PendingResult const& result, WallTime at);
    void save(std::string const& id, std::shared_ptr<std::vector<Change> const> const& more,
              Store::Written done);
    void settle(std::string const& id);
    void drop(std::string const& id, Error const& why);
    void shrink_memory();
    void announce(PendingResult const& result);
    void deliver(PendingResult& result, Poll const& poll);
    void send(PendingResult& result, Poll const& poll,
              std::shared_ptr<std::string const> const& payload);
    void give_up(std::string const& id, Poll* poll);
    void send_completions(Stream const& stream, std::int64_t previous, Answer& answer) const;
    void end_completion_poll(StreamKey const& key, CompletionPoll* poll);
    void forget_stream_if_idle(StreamKey const& key);
    void fetched(PendingResult& result);
    void forget(std::string const& id, std::vector<Change>& changes);
    void forget_fetched(std::vector<Change>& changes);
    void forget_unfetched(std::vector<Change>& changes);
    [[nodiscard]] std::string try_again(std::string const& id) const;

    Scheduler& scheduler_;
    Store& store_;
    ResultsOptions options_;
    std::map<std::string, PendingResult> results_{};
    std::map<StreamKey, Stream> streams_{};
    std::size_t pending_{0};
    std::size_t pending_samples_{0};
    std::size_t waiting_{0};
    /// Of the newest completion. Begins with the time of day, so that it is larger than any of an
    /// earlier life of the server.
    std::int64_t cursor_;
    /// Settled ones, oldest first, and how many of them were not fetched. Some may be gone already.
    std::deque<std::string> settled_{};
    std::size_t unfetched_{0};
    /// Fetched ones, oldest first, and their bytes. Some may be gone already.
    std::deque<std::string> fetched_{};
    std::size_t fetched_bytes_{0};
    /// Those whose results may be in memory, oldest first, and the bytes of these.
    std::deque<std::string> in_memory_{};
    std::size_t memory_bytes_{0};
    /// Results to be written again, and when.
    std::vector<std::pair<std::string, std::shared_ptr<std::vector<Change> const>>> unsaved_{};
    std::unique_ptr<Again> again_{};
    std::shared_ptr<bool> alive_{std::make_shared<bool>(true)};
};

}  // namespace tinkxx::local
