#include "wire/sampling/completions.hpp"

#include "wire/json/json.hpp"

#include <algorithm>

namespace tinkxx::wire {

std::string encode_completion_poll(CompletionRequest const& poll) {
    std::string out;
    JsonOut json{out};
    json.open_object();
    json.key("target");
    json.open_object();
    json.member("type", "sampling_session");
    json.member("sampling_session_id", poll.sampling_session_id);
    json.member("cloned_sampler_id", poll.cloned_sampler_id);
    json.close_object();
    json.member("prev_cursor", poll.prev_cursor);
    json.key("retrieved_request_ids");
    json.list(poll.retrieved_request_ids);
    json.close_object();
    return out;
}

// A state that this release does not know counts as done: the fetch that follows tells what it is.
static void read(JsonIn const& in, Completion& out) {
    out.request_id = in.required<std::string>("request_id");
    out.failed = in.required<std::string>("state") == "failed";
    out.payload_bytes = std::max<std::int64_t>(
        in.optional<std::int64_t>("response_payload_uncompressed_size").value_or(0), 0);
}

static void read(JsonIn const& in, Completions& out) {
    out.completions = in.required<std::vector<Completion>>("completions");
    out.cursor = in.required<std::int64_t>("cursor");
}

Result<Completions> decode_completions(std::string_view json) {
    return decode_json<Completions>("retrieve_futures", json);
}

}  // namespace tinkxx::wire
