#pragma once

#include "base/common/intrusive_list.hpp"

#include <sys/epoll.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace tinkxx::base {

/// A socket that wants to know what happens to it. Loop thread only.
class SocketWatch {
public:
    SocketWatch() noexcept = default;
    SocketWatch(SocketWatch const&) = delete;
    SocketWatch& operator=(SocketWatch const&) = delete;

    /// EPOLL… flags of what is new since it was last told; 0 for a call that `again` asked for. May
    /// destroy any watch.
    virtual void on_events(std::uint32_t events) = 0;

protected:
    virtual ~SocketWatch() = default;

private:
    friend class SocketEvents;
    ListLinks<SocketWatch> links_{};
    ListLinks<SocketWatch> leaving_links_{};
    std::uint32_t leaving_events_{0};
};

/// Tells sockets what is new with them, each thing once (edge-triggered): so a socket costs one
/// system call when it comes, one when it goes, and none in between. Loop thread only.
class SocketEvents {
public:
    SocketEvents();
    SocketEvents(SocketEvents const&) = delete;
    SocketEvents& operator=(SocketEvents const&) = delete;
    ~SocketEvents();

    /// From now on `watch` is told. 0, or the system's code for why it cannot be.
    [[nodiscard]] int add(int socket, SocketWatch& watch) noexcept;
    /// `watch` is not told any more. Before the socket is closed.
    void remove(int socket, SocketWatch& watch) noexcept;
    /// Calls `watch` in the next `tell`, even if nothing is new. Harmless to repeat.
    void again(SocketWatch& watch) noexcept;

    /// Readable when the system has news to tell.
    [[nodiscard]] int descriptor() const noexcept { return epoll_; }
    /// Whether there is something to tell that is fetched already.
    [[nodiscard]] bool pending() const noexcept {
        return at_ < count_ || !again_.empty() || !leaving_.empty();
    }
    /// Waits until there is something to tell, `wake` is called, or so much time has passed; none
    /// for ever. False if time has passed.
    bool wait(std::optional<std::chrono::nanoseconds> limit) noexcept;
    /// Ends a `wait`, or keeps the next one from waiting. Any thread.
    void wake() noexcept;
    /// Tells what is new, then calls those who asked for it, and then tells those whose peers have
    /// gone; each for at most `limit`, but at least one. What is left is told the next time. True
    /// if there was anything.
    ///
    /// So none keeps the others from their turn, however long it takes: thousands of peers that
    /// leave at once are not in the way of one that asks something.
    bool tell(std::chrono::nanoseconds limit);

private:
    [[nodiscard]] bool tell_news(std::chrono::nanoseconds limit);
    [[nodiscard]] bool tell_leaving(std::chrono::nanoseconds limit);
    [[nodiscard]] bool call_again(std::size_t most, std::chrono::nanoseconds limit);
    void fetch(int timeout_ms) noexcept;
    void close() noexcept;

    int epoll_;
    int wake_;
    std::array<epoll_event, 256> events_{};
    std::size_t at_{0};
    std::size_t count_{0};
    IntrusiveList<SocketWatch, &SocketWatch::links_> again_{};
    IntrusiveList<SocketWatch, &SocketWatch::leaving_links_> leaving_{};
};

}  // namespace tinkxx::base
