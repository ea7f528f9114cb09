#include "support/servers/canned_tinker.hpp"

#include <bit>
#include <charconv>
#include <cstring>

namespace tinkxx::test {
namespace {

ScriptedAnswer json(std::string body) {
    return {.headers = {{"Content-Type", "application/json"}}, .body = std::move(body)};
}

void varint(std::string& out, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) out += static_cast<char>((value & 0x7fU) | 0x80U);
    out += static_cast<char>(value);
}

void bytes_field(std::string& out, unsigned number, std::string_view bytes) {
    varint(out, (number << 3U) | 2U);
    varint(out, bytes.size());
    out += bytes;
}

template <class T>
std::string packed(std::vector<T> const& values) {
    static_assert(std::endian::native == std::endian::little);
    std::string bytes(values.size() * sizeof(T), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

/// The value of a member that is a number or a plain string, as text. Quick and not strict: the
/// bodies are our own.
std::string_view member(std::string_view json, std::string_view name) {
    auto at = json.find('"' + std::string{name} + "\":");
    if (at == std::string_view::npos) return {};
    at += name.size() + 3;
    bool const quoted = json[at] == '"';
    if (quoted) ++at;
    auto const end = json.find_first_of(quoted ? "\"" : ",}", at);
    return json.substr(at, end - at);
}

std::int64_t number(std::string_view text) {
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

}  // namespace

CannedTinker::CannedTinker(CannedTinkerOptions options) : options_{std::move(options)} {
    std::vector<std::int32_t> tokens;
    std::vector<float> logprobs;
    std::string token_list;
    std::string logprob_list;
    for (std::size_t i = 0; i < options_.tokens; ++i) {
        tokens.push_back(static_cast<std::int32_t>(1000 + i));
        logprobs.push_back(-0.25F);
        token_list += (i == 0 ? "" : ",") + std::to_string(tokens.back());
        logprob_list += i == 0 ? "-0.25" : ",-0.25";
    }
    json_result_ = R"({"sequences":[{"stop_reason":"length","tokens":[)" + token_list +
                   R"(],"logprobs":[)" + logprob_list + R"(]}],"type":"sample"})";
    std::string sequence;
    varint(sequence, (1U << 3U) | 0U);
    varint(sequence, 1);  // length
    bytes_field(sequence, 2, packed(tokens));
    bytes_field(sequence, 3, packed(logprobs));
    bytes_field(proto_result_, 1, sequence);
}

Reaction CannedTinker::operator()(ReceivedRequest const& request) {
    constexpr std::string_view root = "/api/v1/";
    std::string_view path = request.target;
    path.remove_prefix(std::min(path.size(), path.find(root) + root.size()));
    if (path == "asample") return submit(request);
    if (path == "retrieve_future") return result(request);
    if (path == "retrieve_futures") return completions(request);
    if (path == "client/config") return {.answer = json(options_.flags)};
    if (path == "create_session") return {.answer = json(R"({"session_id":"s"})")};
    if (path == "create_sampling_session") {
        return {.answer = json(R"({"sampling_session_id":"s:sample:0"})")};
    }
    return {.answer = json("{}")};
}

Reaction CannedTinker::submit(ReceivedRequest const& request) {
    auto const seq_id = number(member(request.body, "seq_id"));
    auto const id = "req-" + std::to_string(seq_id);
    {
        std::scoped_lock const lock{mutex_};
        if (submits_[seq_id]++ == 0) completed_.push_back(id);
    }
    return {.answer =
                json(R"({"request_id":")" + id + R"(","sample_sequence_ids":[")" + id + R"("]})")};
}

Reaction CannedTinker::result(ReceivedRequest const& request) {
    {
        std::scoped_lock const lock{mutex_};
        ++polls_;
    }
    Reaction reaction;
    reaction.delay = options_.result_delay;
    bool const takes_proto =
        request.header("accept").find("application/x-protobuf") != std::string::npos;
    if (options_.protobuf && takes_proto) {
        reaction.answer = {.headers = {{"Content-Type", "application/x-protobuf"}},
                           .body = proto_result_};
    } else {
        reaction.answer = json(json_result_);
    }
    return reaction;
}

Reaction CannedTinker::completions(ReceivedRequest const& request) {
    auto const cursor = static_cast<std::size_t>(number(member(request.body, "prev_cursor")));
    std::string list;
    std::size_t next = 0;
    {
        std::scoped_lock const lock{mutex_};
        next = completed_.size();
        for (auto i = std::min(cursor, next); i < next; ++i) {
            list += std::string{list.empty() ? "" : ","} + R"({"state":"finished","request_id":")" +
                    completed_[i] + R"(","response_payload_uncompressed_size":)" +
                    std::to_string(proto_result_.size()) + '}';
        }
    }
    Reaction reaction;
    reaction.answer =
        json(R"({"completions":[)" + list + R"(],"cursor":)" + std::to_string(next) + '}');
    // Nothing new: hold the poll for a moment, as the service does for longer.
    reaction.delay = list.empty() ? std::chrono::milliseconds{20} : options_.result_delay;
    return reaction;
}

std::map<std::int64_t, int> CannedTinker::submits() const {
    std::scoped_lock const lock{mutex_};
    return submits_;
}

std::size_t CannedTinker::polls() const {
    std::scoped_lock const lock{mutex_};
    return polls_;
}

}  // namespace tinkxx::test
