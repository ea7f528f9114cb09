#pragma once

#include "local/listen/connection.hpp"

#include <tinkxx/testing/manual_clock.hpp>

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::test {

/// A handler that keeps what it is asked, or answers as it is told to.
class KeepingHandler final : public local::Handler {
public:
    struct Asked {
        local::ServerRequest request;
        std::shared_ptr<local::Answer> answer;
    };
    std::vector<Asked> asked{};
    std::function<void(local::ServerRequest&, std::shared_ptr<local::Answer>)> act{};

    void handle(local::ServerRequest request, std::shared_ptr<local::Answer> answer) override {
        if (act) return act(request, std::move(answer));
        asked.push_back({std::move(request), std::move(answer)});
    }
};

inline void reply(local::Answer& answer, std::string body, int status = 200) {
    answer.head(status, {{"Content-Type", "text/plain"}}, body.size());
    answer.data(std::move(body));
    answer.done();
}

/// The server's end of a connection whose other end is the test: no socket, and no time but that
/// of the clock.
class WiredConnection final : public local::ServerConnection::Carrier {
public:
    explicit WiredConnection(local::ListenerLimits limits = {})
        : share{.scheduler = clock,
                .handler = handler,
                .limits = limits,
                .on_request = [this](auto const& one) { records.push_back(one); },
                .on_trouble = [this](std::string line) { troubles.push_back(std::move(line)); }},
          connection{std::make_unique<local::ServerConnection>(share, *this)} {}

    testing::ManualClock clock{};
    KeepingHandler handler{};
    std::vector<local::RequestRecord> records{};
    std::vector<std::string> troubles{};
    local::ConnectionShare share;
    std::unique_ptr<local::ServerConnection> connection;
    std::string sent{};                ///< by the server, and not taken yet
    std::size_t write_room{SIZE_MAX};  ///< how much the peer takes
    std::size_t most_held{0};          ///< by the connection so far
    int stalls{0};                     ///< that the connection told of

    void send(std::string_view bytes) {
        connection->received(std::span{bytes.data(), bytes.size()});
        settle();
    }
    /// Sends as much as the connection has room for, as a socket would, and says how much that was.
    std::size_t offer(std::string_view bytes) {
        std::size_t at = 0;
        while (at < bytes.size() && connection->wants_input()) {
            auto const piece = bytes.substr(at, connection->input_room());
            at += piece.size();
            send(piece);
        }
        return at;
    }
    /// Does what a socket would at the end of a turn.
    void settle() {
        do {
            changed_ = false;
            most_held = std::max(most_held, connection->held());
            connection->proceed();
            most_held = std::max(most_held, connection->held());
            std::array<iovec, 4> pieces{};
            while (write_room > 0 && connection->unsent() > 0) {
                auto const count = connection->output(pieces);
                std::size_t bytes = 0;
                for (std::size_t i = 0; i < count && write_room > 0; ++i) {
                    auto const length = std::min(pieces.at(i).iov_len, write_room);
                    sent.append(static_cast<char const*>(pieces.at(i).iov_base), length);
                    write_room -= write_room == SIZE_MAX ? 0 : length;
                    bytes += length;
                    if (length < pieces.at(i).iov_len) break;
                }
                connection->wrote(bytes);
            }
            clock.run_ready();
            if (connection->wants_turn()) {
                connection->next_turn();
                changed_ = true;
            }
        } while (changed_);
    }
    void advance(std::chrono::nanoseconds time) {
        clock.advance(time);
        settle();
    }
    [[nodiscard]] std::string take() { return std::exchange(sent, {}); }
    [[nodiscard]] local::ServerConnection::Next next() const { return connection->next(); }

private:
    void on_change() override { changed_ = true; }
    void on_stall() override {
        ++stalls;
        on_change();
    }
    bool changed_{false};
};

}  // namespace tinkxx::test
