#pragma once

#include <tinkxx/scheduler.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>

namespace tinkxx::base {

class EventLoop;
class SocketEvents;

/// Work that is put off to the end of the current turn, such as flushing a connection that
/// several requests wrote to. Intrusive, so that putting off never allocates. Loop thread only.
class TurnEnd {
public:
    TurnEnd() noexcept = default;
    TurnEnd(TurnEnd const&) = delete;
    TurnEnd& operator=(TurnEnd const&) = delete;
    /// May put off again; that is then done before the turn is over.
    virtual void on_turn_end() = 0;

protected:
    virtual ~TurnEnd();

private:
    friend class EventLoop;
    EventLoop* loop_{};
    TurnEnd* previous_{};
    TurnEnd* next_{};
};

/// The real `Scheduler`: steady clock, timer queue, batched queue from other threads, and the
/// readiness of sockets.
class EventLoop final : public Scheduler {
public:
    explicit EventLoop(std::optional<std::uint64_t> seed = std::nullopt);
    ~EventLoop() override;

    TimePoint now() const noexcept override;
    WallTime wall() const noexcept override;
    std::uint64_t entropy(std::string_view stream) override;
    void arm(Timer& timer, TimePoint when, Precision precision) noexcept override;
    void disarm(Timer& timer) noexcept override;
    void post(Task task) override;
    bool on_loop() const noexcept override;
    bool turned_elsewhere() const noexcept override;
    bool turn(std::chrono::nanoseconds limit) override;

    /// Calls `work.on_turn_end()` before this turn is over, in the order of the first request.
    /// Harmless if it waits already.
    void at_turn_end(TurnEnd& work) noexcept;

    /// Readable when something has come from outside since `wait_time`.
    [[nodiscard]] int descriptor() const noexcept;
    /// How long somebody may wait for that before the next `turn`: zero if something is due, empty
    /// if no timer is armed. Between turns.
    [[nodiscard]] std::optional<std::chrono::nanoseconds> wait_time();

    /// How long the loop has slept so far, waiting for something to do.
    [[nodiscard]] std::chrono::nanoseconds slept() const noexcept;

    /// Which tells sockets what is new with them, inside `turn`.
    SocketEvents& sockets() noexcept;

    /// Who hears of exceptions that escape a task, timer, turn-end work or socket handler; the
    /// loop goes on. Set before the first turn; without one they are dropped.
    void on_exception(std::function<void(std::exception_ptr)> handler);
    /// Destroys what was posted and, from now on, what is posted. Not inside a turn.
    void close() noexcept;

private:
    friend class TurnEnd;
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace tinkxx::base
