#pragma once

#include <tinkxx/scheduler.hpp>
#include <tinkxx/status.hpp>

#include "base/common/intrusive_list.hpp"
#include "service/core/pending.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace tinkxx::service {

/// Warns of calls that make no progress, in one line for all that are about the same. One for all
/// clients of a runtime (`RuntimeCore::part`).
///
/// It looks every few seconds, while anything is pending, at a few calls of each client, so that a
/// call costs nothing and a million of them no more than one. The oldest are those to look at: what
/// keeps younger ones waiting keeps the oldest waiting too, or else gets done.
///
/// Loop thread only.
class StallReporter final : private Timer {
public:
    /// How long a call may make no progress before it is worth a line, and the time between lines.
    static constexpr std::chrono::seconds patience{5};
    static constexpr std::chrono::seconds pause{60};
    /// Calls of one client that are looked at.
    static constexpr std::size_t looked_at = 16;

    /// Clients with equal topics share a line.
    struct Topic {
        std::string server{};
        /// Where their lines go; null for the common log.
        void const* log{nullptr};

        bool operator==(Topic const&) const = default;
    };
    /// A client whose calls are watched.
    class Client {
    public:
        Client() noexcept = default;
        Client(Client const&) = delete;
        Client& operator=(Client const&) = delete;
        [[nodiscard]] virtual PendingList const& watched() const noexcept = 0;
        [[nodiscard]] virtual Topic topic() const = 0;
        virtual void warn(std::string const& line) = 0;

    protected:
        virtual ~Client() = default;

    private:
        friend class StallReporter;
        base::ListLinks<Client> links_{};
    };

    /// `client` has something pending. Harmless to repeat. It is forgotten by itself when nothing
    /// is pending any more, and must be forgotten before it goes away. Always the same scheduler.
    void watch(Client& client, Scheduler& scheduler);
    void forget(Client& client) noexcept;

private:
    /// What there is to say about one topic.
    struct Stall {
        Topic topic{};
        Client* teller{nullptr};
        OperationStatus longest{};
        std::size_t pending{0};
    };
    struct Told {
        Topic topic{};
        TimePoint at{};
    };

    void on_time() override;
    /// Adds what is to be said about `client`. Returns when to look at it again.
    [[nodiscard]] static TimePoint look(Client& client, TimePoint now, std::vector<Stall>& stalls);
    /// Says it, unless that was done of late. Returns when it may be said again.
    [[nodiscard]] TimePoint tell(Stall const& stall, TimePoint now);

    base::IntrusiveList<Client, &Client::links_> clients_{};
    std::vector<Told> told_{};
    Scheduler* scheduler_{nullptr};
};

/// `sample has waited 5.0 s: POST /api/v1/asample: 429 …; next attempt in 1.0 s, gives up in 2.0
/// h`. `pending` is how many calls are, with this one.
[[nodiscard]] std::string stall_text(OperationStatus const& status, std::size_t pending);

}  // namespace tinkxx::service
