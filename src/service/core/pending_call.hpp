#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/observer.hpp>
#include <tinkxx/scheduler.hpp>
#include <tinkxx/status.hpp>

#include "service/core/pending.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::service {

class ClientCore;

/// A call while it is under way: listed among the pending, seen by observers, and ended by its
/// deadline, a cancel or the client's close. Made on the caller's thread, then lives on the loop,
/// which holds it until it is over.
///
/// It keeps neither core nor name nor metadata: there may be a million calls, and each has these
/// at hand already.
class PendingCall : public std::enable_shared_from_this<PendingCall>, private PendingEntry {
public:
    ~PendingCall() override;

    /// Goes to the loop. Any thread, once.
    void launch();

protected:
    PendingCall() noexcept;

    [[nodiscard]] virtual ClientCore& core() const noexcept = 0;
    [[nodiscard]] virtual std::string_view call_name() const noexcept = 0;
    /// How long it may take; 0: as long as it likes.
    [[nodiscard]] virtual std::chrono::milliseconds limit() const noexcept = 0;
    /// What observers are told of the call, but for the client's.
    [[nodiscard]] virtual Metadata told_metadata() const = 0;
    /// Where it stands.
    [[nodiscard]] virtual Stage shown() const noexcept = 0;
    /// Adds what there is to say about that.
    virtual void fill(OperationStatus& status, TimePoint now) const = 0;

    /// Whether it begins at all; if not, its caller has been told.
    [[nodiscard]] virtual bool admitted();
    /// It is under way: does what it is for.
    virtual void begin() = 0;
    /// Whether the caller wants no answer any more.
    [[nodiscard]] virtual bool answered() const = 0;
    virtual void answer(Error error) = 0;
    /// Ends it with this error.
    virtual void fail(Error error) = 0;
    /// As `fail`, since it took too long.
    virtual void expire(Error error) { fail(std::move(error)); }
    /// Ends it for a caller who wants no answer.
    virtual void stop() noexcept = 0;
    /// It leaves the list.
    virtual void on_leave() noexcept {}
    /// The error of a call that took too long, and of one whose client was closed.
    [[nodiscard]] virtual ErrorDetails late_error(std::string const& limit,
                                                  std::string const& standing) const;
    [[nodiscard]] virtual ErrorDetails closed_error() const;
    /// Ends it, unless it is what its client's close waits for.
    void on_close() noexcept override;

    /// For the promise: ends the call on the loop.
    [[nodiscard]] Task canceller();
    /// Gives it its number, and the time that it counts from. By itself it does so when it begins.
    void number();
    /// Goes on for another one: with its number, and from its time.
    void take_over(PendingCall const& other) noexcept;
    /// It is over. Harmless to repeat. Gives what has kept the call alive.
    std::shared_ptr<PendingCall> leave() noexcept;
    /// It stays under way, but somebody else holds it.
    void hand_over() noexcept { self_.reset(); }
    void list();
    void unlist() noexcept;
    /// Tells observers if it stands somewhere else than before.
    void look();
    [[nodiscard]] bool under_way() const noexcept { return self_ != nullptr; }
    [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
    [[nodiscard]] TimePoint started() const noexcept { return started_; }
    /// Since when it stands where observers know it to be.
    [[nodiscard]] TimePoint shown_since() const noexcept { return shown_since_; }
    /// When it ends at the latest; empty if no time limits it.
    [[nodiscard]] std::optional<TimePoint> deadline() const noexcept;
    OperationStatus status(TimePoint now) const override;

private:
    class Deadline;

    void arrive();
    void out_of_time();

    // For the loop thread only.
    std::shared_ptr<PendingCall> self_{};  ///< while under way
    std::unique_ptr<Deadline> deadline_;
    std::uint64_t id_{0};  ///< 0: none yet
    TimePoint started_{};
    TimePoint shown_since_{};
    // Last: what derives from this may use the space behind it.
    std::optional<Stage> told_{};  ///< what observers know
};

}  // namespace tinkxx::service
