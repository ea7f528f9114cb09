#pragma once

#include <chrono>
#include <cstddef>

namespace tinkxx::local {

/// What a listener puts up with. Whoever goes beyond is told so and loses the connection.
struct ListenerLimits {
    /// Of the first line and the header lines of one request, and of what follows a chunked body.
    std::size_t max_header_bytes{std::size_t{64} << 10U};
    /// Each costs more memory than it has bytes.
    std::size_t max_header_lines{256};
    /// Of the body of one request, as it is sent.
    std::size_t max_request_bytes{std::size_t{256} << 20U};
    /// Memory of all requests that are on their way at one time: heads, bodies, and what is kept
    /// behind a request that is not answered yet.
    std::size_t max_receiving_bytes{std::size_t{1} << 30U};
    std::size_t max_connections{8192};
    /// What one connection keeps behind a request that is not answered yet. More stays in the
    /// socket.
    std::size_t max_kept_bytes{std::size_t{64} << 10U};
    /// Memory of answers that one connection has not sent. With more, no further request is read.
    std::size_t max_unsent_bytes{std::size_t{256} << 10U};
    /// The same of all connections. With more, those are cut that took something longest ago.
    std::size_t max_sending_bytes{std::size_t{1} << 30U};
    /// From the first byte of a request, or from the start of the connection, to the end of its
    /// head.
    std::chrono::milliseconds header_timeout{std::chrono::seconds{20}};
    /// In which at least `min_body_bytes` of a body have to come, unless that is all of it.
    std::chrono::milliseconds body_timeout{std::chrono::seconds{30}};
    std::size_t min_body_bytes{std::size_t{16} << 10U};
    /// In which the peer has to take at least `min_answer_bytes`, unless that is all there is.
    std::chrono::milliseconds write_timeout{std::chrono::seconds{60}};
    std::size_t min_answer_bytes{std::size_t{16} << 10U};
    /// Between two requests of one connection.
    std::chrono::milliseconds idle_timeout{std::chrono::minutes{5}};
    /// After the last answer of a connection, for the peer to read it before the connection ends.
    std::chrono::milliseconds linger{std::chrono::seconds{2}};
};

}  // namespace tinkxx::local
