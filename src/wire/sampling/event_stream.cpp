#include "wire/sampling/event_stream.hpp"

#include "wire/json/json.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace tinkxx::wire {

namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

// Digits only, as the standard wants.
std::optional<std::chrono::milliseconds> milliseconds_in(std::string_view text) {
    if (text.empty() || !std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) {
        return std::nullopt;
    }
    constexpr std::int64_t day = std::int64_t{24} * 60 * 60 * 1000;
    std::int64_t number = day;
    (void)std::from_chars(text.data(), text.data() + text.size(), number);
    return std::chrono::milliseconds{std::min(number, day)};
}

}  // namespace

Result<std::vector<ServerEvent>> EventStream::feed(std::string_view bytes) {
    std::vector<ServerEvent> out;
    while (!bytes.empty()) {
        if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
            bytes.remove_prefix(1);
            continue;
        }
        auto const end = bytes.find_first_of("\r\n");
        auto const part = bytes.substr(0, end);
        line_ += part;
        if (line_.size() + event_.data.size() + event_.event.size() > most_) {
            ErrorDetails details;
            details.kind = ErrorKind::validation;
            details.message = "event stream: an event is larger than " + std::to_string(most_) +
                              " bytes; the server may not send events at all";
            return details;
        }
        if (end == std::string_view::npos) break;
        after_cr_ = bytes[end] == '\r';
        bytes.remove_prefix(end + 1);
        end_line(out);
    }
    return out;
}

void EventStream::end_line(std::vector<ServerEvent>& out) {
    std::string_view line = line_;
    if (std::exchange(at_start_, false) && line.starts_with(byte_order_mark)) {
        line.remove_prefix(byte_order_mark.size());
    }
    if (line.empty()) {
        if (has_data_) {
            event_.id = last_id_;
            out.push_back(std::move(event_));
        }
        event_ = {};
        has_data_ = false;
    } else {
        auto const colon = line.find(':');
        auto const name = line.substr(0, colon);
        auto value = colon == std::string_view::npos ? std::string_view{} : line.substr(colon + 1);
        if (value.starts_with(' ')) value.remove_prefix(1);
        if (name == "data") {
            if (has_data_) event_.data += '\n';
            event_.data += value;
            has_data_ = true;
        } else if (name == "event") {
            event_.event = value;
        } else if (name == "id") {
            if (value.find('\0') == std::string_view::npos) last_id_ = value;
        } else if (name == "retry") {
            if (auto const wait = milliseconds_in(value)) event_.retry = wait;
        }
    }
    line_.clear();
}

static void read(JsonIn const& in, StreamedChunk& out) {
    if (auto const error = in.optional<boost::json::value>("error")) {
        auto const* text = error->if_string();
        out.error = text != nullptr ? std::string{text->data(), text->size()}
                                    : boost::json::serialize(*error);
        return;
    }
    out.token = in.optional<std::string>("token");
    out.token_id = in.optional<Token>("token_id");
    out.index = in.optional<std::int64_t>("index");
    out.logprob = in.optional<float>("logprob");
    out.finish_reason = in.optional<std::string>("finish_reason");
    out.total_tokens = in.optional<std::int64_t>("total_tokens");
}

std::optional<StreamedChunk> decode_sample_chunk(std::string_view data) {
    auto chunk = decode_json<StreamedChunk>("stream_sample", data);
    if (!chunk) return std::nullopt;
    return *std::move(chunk);
}

}  // namespace tinkxx::wire
