#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/types/sampling.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::wire {

/// One event of a `text/event-stream`.
struct ServerEvent {
    /// The data lines, joined by newlines.
    std::string data{};
    /// Empty: none was named.
    std::string event{};
    /// The last id that the stream gave, in this event or before.
    std::string id{};
    /// How long to wait before connecting anew, if this event says so.
    std::optional<std::chrono::milliseconds> retry{};
};

/// Takes an event stream in pieces and gives its events (R-EXT-60). Lines end in LF, CRLF or CR;
/// comments are passed over, and so are events without data, as the standard wants.
class EventStream {
public:
    /// An event that is larger is an error: it may be one that never ends.
    explicit EventStream(std::size_t max_event_bytes = std::size_t{16} << 20U) noexcept
        : most_{max_event_bytes} {}

    /// The events that end in these bytes. After an error the stream is of no use.
    [[nodiscard]] Result<std::vector<ServerEvent>> feed(std::string_view bytes);

private:
    void end_line(std::vector<ServerEvent>& out);

    std::size_t most_;
    std::string line_{};
    ServerEvent event_{};
    bool has_data_{false};
    bool after_cr_{false};
    bool at_start_{true};
    std::string last_id_{};
};

/// A piece of a streamed sample (R-EXT-61), or why there is none.
struct StreamedChunk : SampleChunk {
    /// Set instead of all others when sampling failed.
    std::optional<std::string> error{};
};
/// The chunk in the data of an event; none if it is something else, which is to be skipped.
[[nodiscard]] std::optional<StreamedChunk> decode_sample_chunk(std::string_view data);

}  // namespace tinkxx::wire
