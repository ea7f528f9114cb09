#pragma once

#include "support/sockets/sockets.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tinkxx::load {

/// HTTP/1.1 over a socket of its own, with all the liberties that a client of good manners does not
/// take. Only to the loopback address. One thread.
class RawSocket {
public:
    using TimePoint = std::chrono::steady_clock::time_point;

    /// Connects. If nobody listens, it is as if the peer had closed.
    explicit RawSocket(std::uint16_t port);

    /// Sends `head` and `body` and reads one answer meanwhile, which may come before all is sent.
    /// Its status as text; "closed" if the peer ends the connection first, "silent" if there is no
    /// complete answer by then. `answer` gets the body, at most a mebibyte of it.
    [[nodiscard]] std::string ask(std::string_view head, std::string_view body, TimePoint limit,
                                  std::string* answer = nullptr);
    /// Sends without reading; false if not all of it was taken by then.
    bool send(std::string_view bytes, TimePoint limit);
    /// No more will be sent, and answers may still come.
    void end_sending();
    /// "open", or "closed" if the peer has ended it.
    [[nodiscard]] std::string state();

private:
    /// Reads what is there; false if the peer has ended the connection.
    [[nodiscard]] bool read_some();
    /// Looks at what has come; true if an answer is complete.
    [[nodiscard]] bool complete();

    test::Fd socket_;
    std::string in_{};          ///< the head, and then what is kept of the body
    std::size_t head_size_{0};  ///< 0: the head is not complete
    std::size_t body_size_{0};  ///< that has come
    std::size_t length_{0};
    bool chunked_{false};
    std::string tail_{};  ///< the last bytes of a chunked body
};

/// The head of a request, with the length of the body if there is one.
[[nodiscard]] std::string request_head(std::string_view method, std::string_view path,
                                       std::size_t body_size, std::string_view more = {});

}  // namespace tinkxx::load
