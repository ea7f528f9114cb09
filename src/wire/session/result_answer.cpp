#include "wire/session/result_answer.hpp"

#include "wire/json/json.hpp"
#include "wire/json/json_scan.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>
#include <utility>

namespace tinkxx::wire {

namespace json = boost::json;
using namespace result_answer;

namespace {

bool contains_ignoring_case(std::string_view text, std::string_view lower_part) {
    auto const lower = [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    return !std::ranges::search(text, lower_part, {}, lower).empty();
}

json::value const* member(json::object const& object, std::string_view name) {
    return object.if_contains({name.data(), name.size()});
}

std::optional<std::string_view> text(json::object const& object, std::string_view name) {
    auto const* value = member(object, name);
    if (value == nullptr || !value->is_string()) return std::nullopt;
    return std::string_view{value->get_string().data(), value->get_string().size()};
}

std::int64_t count(json::object const& object, std::string_view name) {
    auto const* value = member(object, name);
    if (value == nullptr) return 0;
    JsonIn::Failure failure;
    auto const number = JsonIn{value, failure}.as<std::int64_t>();
    return std::max<std::int64_t>(failure.noted ? 0 : number, 0);
}

std::optional<QueueReport> queue_report(json::object const& object) {
    auto const state = text(object, "queue_state");
    if (!state) return std::nullopt;
    return QueueReport{.state = parse_queue_state(*state),
                       .reason = std::string{text(object, "queue_state_reason").value_or("")}};
}

ErrorCategory category(json::object const& object) {
    auto const word = text(object, "category").value_or("");
    if (contains_ignoring_case(word, "user") && word.size() == 4) return ErrorCategory::user;
    if (contains_ignoring_case(word, "server") && word.size() == 6) return ErrorCategory::server;
    return ErrorCategory::unknown;
}

Failed failed(json::object const& answer) {
    Failed out{.message = {}, .category = category(answer)};
    auto const* error = member(answer, "error");
    if (error == nullptr || error->is_null()) {
        out.message = "the server gave no reason";
    } else if (auto const* reason = error->if_string()) {
        out.message.assign(reason->data(), reason->size());
    } else {
        // Some servers put an object there; its message says most.
        auto const* inner = error->if_object();
        auto const message = inner == nullptr ? std::nullopt : text(*inner, "message");
        out.message = message ? std::string{*message} : json::serialize(*error);
        if (inner != nullptr && out.category == ErrorCategory::unknown) {
            out.category = category(*inner);
        }
    }
    return out;
}

std::optional<std::chrono::milliseconds> retry_after(json::object const& answer) {
    auto const* wait = member(answer, "retry_after_ms");
    if (wait == nullptr || !wait->is_number()) return std::nullopt;
    // Nobody means more than a day, and adding it to a time must not overflow.
    constexpr std::chrono::milliseconds most = std::chrono::hours{24};
    return std::chrono::milliseconds{
        std::min<std::int64_t>(count(answer, "retry_after_ms"), most.count())};
}

TryAgain try_again(json::object const& answer) {
    return {.queue = queue_report(answer), .retry_after = retry_after(answer)};
}

// The members that tell an answer's kind, as they stand in it.
struct Marks {
    std::string_view type{};
    std::string_view status{};
    std::string_view result{};
    bool error{false};
};

std::optional<Marks> marks_of(std::string_view body, std::size_t& position) {
    Marks marks;
    JsonScan scan{body};
    while (auto const found = scan.next()) {
        if (found->name == "type") marks.type = found->value;
        if (found->name == "status") marks.status = found->value;
        if (found->name == "result") marks.result = found->value;
        if (found->name == "error") marks.error = true;
    }
    position = scan.position();
    if (!scan.complete()) return std::nullopt;
    return marks;
}

// Calls `fn` with the object that a small answer is.
template <class Fn>
ResultAnswer with_object(std::string_view body, Fn fn) {
    auto const document = parse_json("retrieve_future", body);
    if (!document) return Malformed{document.error().what()};
    return fn(document->get_object());
}

}  // namespace

std::string encode_retrieve_future(std::string_view request_id, bool allow_metadata_only) {
    std::string out;
    out.reserve(request_id.size() + 48);  // `{"request_id":"","allow_metadata_only":false}`
    JsonOut json{out};
    json.open_object();
    json.member("request_id", request_id);
    json.member("allow_metadata_only", allow_metadata_only);
    json.close_object();
    return out;
}

std::string encode_cancel_future(std::string_view request_id) {
    std::string out;
    JsonOut json{out};
    json.open_object();
    json.member("request_id", request_id);
    json.close_object();
    return out;
}

std::optional<QueueReport> decode_queue_report(std::string_view json) {
    auto const document = parse_json("retrieve_future", json);
    if (!document || !document->is_object()) return std::nullopt;
    return queue_report(document->get_object());
}

std::optional<std::chrono::milliseconds> decode_retry_after(std::string_view json) {
    auto const document = parse_json("retry_after_ms", json);
    if (!document || !document->is_object()) return std::nullopt;
    return retry_after(document->get_object());
}

ResultAnswer classify_result_answer(std::string_view content_type, std::string_view body) {
    if (contains_ignoring_case(content_type, "application/x-protobuf")) return Protobuf{};

    std::size_t position = 0;
    auto const marks = marks_of(body, position);
    if (!marks) {
        return Malformed{"retrieve_future: the answer is no JSON object (at byte " +
                         std::to_string(position) + " of " + std::to_string(body.size()) +
                         "); check that TINKER_BASE_URL or ClientOptions::base_url names a Tinker "
                         "server"};
    }
    if (marks->type == R"("try_again")") {
        return with_object(body, [](json::object const& answer) { return try_again(answer); });
    }
    if (marks->status == R"("complete_metadata")") {
        return with_object(body, [](json::object const& answer) {
            return Metadata{count(answer, "response_payload_size")};
        });
    }
    if (marks->status == R"("pending")") return Pending{};
    if (marks->error || marks->status == R"("failed")") {
        return with_object(body, [](json::object const& answer) { return failed(answer); });
    }
    if (marks->status == R"("completed")" && !marks->result.empty()) {
        auto const inner = marks_of(marks->result, position);
        if (inner && inner->error) {
            return with_object(marks->result,
                               [](json::object const& answer) { return failed(answer); });
        }
        return Json{marks->result};
    }
    return Json{body};
}

}  // namespace tinkxx::wire
