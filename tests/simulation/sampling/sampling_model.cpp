#include "simulation/sampling/sampling_model.hpp"

#include "simulation/common/messages.hpp"
#include "wire/json/base64.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace tinkxx::simulation {

namespace {

using namespace std::chrono_literals;
using testing::Reply;
using testing::SentRequest;

std::int64_t number(std::string_view text) {
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

std::string_view tokens_of(std::string_view body) {
    constexpr std::string_view mark = R"("tokens":[)";
    auto const at = body.find(mark);
    if (at == std::string_view::npos) return {};
    auto const first = at + mark.size();
    return body.substr(first, body.find(']', first) - first);
}

template <class T>
std::string packed(std::vector<T> const& values) {
    std::string out(values.size() * sizeof(T), '\0');
    if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
    return out;
}

}  // namespace

int call_of(std::string_view submit_body) {
    auto const tokens = tokens_of(submit_body);
    return tokens.empty() ? -1 : static_cast<int>(number(tokens));
}

ServiceNature ModelService::draw_nature(service::Random& random) {
    auto const chance = [&](double probability) { return random.unit() < probability; };
    ServiceNature nature;
    nature.has_config = !chance(0.1);
    nature.tokens = nature.has_config && chance(0.25);
    nature.completion_poll = nature.has_config && chance(0.4);
    nature.completion_poll_missing = chance(0.1);
    nature.cancels = chance(0.6);
    nature.no_retries = chance(0.05) && nature.has_config;
    nature.stuck_detection = !chance(0.1) || !nature.has_config;
    if (chance(0.3)) nature.max_concurrent = 1 + static_cast<std::int64_t>(random.next() % 8);
    if (chance(0.3)) nature.dispatch_bytes = static_cast<std::int64_t>(random.next() % 2000);
    if (chance(0.3)) nature.download_bytes = static_cast<std::int64_t>(random.next() % 400);
    if (chance(0.2)) nature.billing_limit = 20s;
    if (!nature.has_config) {  // nobody hears of these
        nature.max_concurrent.reset();
        nature.dispatch_bytes.reset();
        nature.download_bytes.reset();
        nature.billing_limit = ServiceNature{}.billing_limit;
    }
    nature.lost_is_404 = chance(0.2);
    nature.old_members = chance(0.1);
    nature.no_sequence_ids = chance(0.2);
    if (chance(0.15)) {
        nature.hold = 0ns;
        nature.longest_sample = 3s;
    } else if (chance(0.1)) {
        nature.hold = 90s;  // longer than clients wait
        nature.longest_sample = 120s;
    }
    if (chance(0.4)) nature.inline_bytes = random.next() % 200;
    return nature;
}

ModelService::ModelService(std::string name, std::uint64_t seed, testing::ManualClock& clock,
                           Tally& tally)
    : MoodyService{std::move(name), seed, clock, tally, {.probability = 0.05, .most_pieces = 5}},
      nature_{draw_nature(random_)} {
    storm_ = random_.unit();
}

void ModelService::calm() {
    MoodyService::calm();
    nature_.longest_sample = std::min<std::chrono::nanoseconds>(nature_.longest_sample, 2s);
    // A completion poll does not see what is submitted while it is held.
    nature_.hold = std::min<std::chrono::nanoseconds>(nature_.hold, 2s);
    auto const soon = clock_.now() + 30s;
    for (auto& [id, pending] : results_) pending.done = std::min(pending.done, soon);
    for (auto& [session, log] : logs_) {
        for (auto& event : log) event.visible = std::min(event.visible, soon);
    }
}

void ModelService::restart() {
    count("restart");
    // The stream of completions survives, and tells what became of the lost.
    for (auto const& [id, pending] : results_) {
        if (pending.announced) continue;
        logs_[pending.sampling_session].push_back(
            {.request_id = id, .visible = clock_.now(), .failed = true});
    }
    results_.clear();
    if (chance(0.2)) nature_.old_members = !nature_.old_members;
}

ModelService::Answer ModelService::serve(SentRequest const& request) {
    check_credential(request);
    if (outage_.on()) return outage_.reply(random_);
    auto const path = request.path.starts_with(root) ? request.path.substr(root.size()) : "";
    if (auto spoilt = mood(request)) return *spoilt;
    if (path == "asample") return submit(request);
    if (path == "retrieve_future") return poll(request);
    if (path == "retrieve_futures") return completions(request);
    if (path == "cancel_future") return cancel(request);
    if (path == "client/config") return client_config();
    if (path == "client/dynamic_config") return dynamic_config();
    if (path == "auth/token") return auth_token();
    if (path == "create_session") return new_session();
    if (path == "create_sampling_session") {
        return reply(
            R"({"sampling_session_id":")" + std::string{json_member(request.body, "session_id")} +
            ":sample:" + std::string{json_member(request.body, "sampling_session_seq_id")} + "\"}");
    }
    if (path == "session_heartbeat") {
        if (!calm_ && chance(0.002)) {
            count("session over");
            return reply(R"({"detail":"session finished"})", 410);
        }
        return reply("{}");
    }
    if (path.ends_with("/finish")) return reply("{}", chance(0.2) ? 404 : 200);
    if (path == "telemetry") return reply(R"({"status":"accepted"})");
    if (path.starts_with("samplers/")) {
        return reply(R"({"sampler_id":"x","base_model":"org/tiny"})");
    }
    complaints_.push_back("nobody should ask for " + request.path);
    return reply(R"({"detail":"Not Found"})", 404);
}

void ModelService::check_credential(SentRequest const& request) {
    auto const shown = request.header("x-api-key");
    bool const key = shown.starts_with("tml-secret-");
    bool const token = std::ranges::find(tokens_, shown) != tokens_.end();
    if (!key && !token) complaints_.push_back("a request without a credential: " + request.path);
    bool const exchange = request.path.ends_with("auth/token");
    bool const config = request.path.ends_with("client/config");
    if (nature_.tokens && key && !exchange && !config) {
        complaints_.push_back("the key itself was sent to " + request.path);
    }
}

std::optional<ModelService::Answer> ModelService::mood(SentRequest const& request) {
    auto const path = std::string_view{request.path}.substr(root.size());
    bool const submit = path == "asample";
    bool const poll = path == "retrieve_future";
    if (blocked_ && (submit || poll || path == "retrieve_futures" || chance(0.3))) {
        count("402");
        return reply(R"({"detail":"the account is blocked"})", 402);
    }
    if (calm_ || !chance(0.35 * storm_)) return std::nullopt;
    auto const drawn = random_.unit();
    if (drawn < 0.04) {
        count("silence");
        return Answer{};
    }
    if (drawn < 0.35) return refusal(request);
    if (drawn < 0.60) {
        int const statuses[] = {500, 502, 503, 504, 529};
        auto const status = statuses[random_.next() % 5];
        count("5xx");
        // Some servers tell the client what it sent.
        auto body = "busy, " + request.header("x-api-key");
        if (status == 503 && chance(0.5)) {
            body = R"({"queue_state":"paused_capacity","queue_state_reason":"full"})";
        }
        return reply(std::move(body), status);
    }
    auto refused = common_refusal(drawn, {.timeout = 0.70, .locked = 0.80, .empty = 0.90}, poll);
    if (refused) return Answer{*std::move(refused)};
    if (drawn < 0.93 && (submit || poll || path == "retrieve_futures")) {
        count("400");
        return reply(R"({"detail":"no"})", 400);
    }
    if (drawn < 0.94 && poll) {
        count("409 for a poll");
        return reply(R"({"detail":"locked"})", 409);
    }
    return std::nullopt;
}

ModelService::Answer ModelService::refusal(SentRequest const& request) {
    auto made = reply(R"({"detail":"too many"})", 429);
    made.pieces = 1;
    switch (random_.next() % 7) {
        case 0:
            count("429 with retry-after");
            made.headers.add("Retry-After", std::to_string(random_.next() % 80));
            break;
        case 1:
            count("429 with retry-after-ms");
            made.headers.add("Retry-After-Ms", std::to_string(random_.next() % 20'000));
            break;
        case 2:
            count("429 with both headers");
            made.headers.add("Retry-After-Ms", std::to_string(random_.next() % 90'000));
            made.headers.add("Retry-After", std::to_string(1 + random_.next() % 5));
            break;
        case 3:
            count("429 with a hint in its body");
            made.body = R"({"detail":"too many","retry_after_ms":)" +
                        std::to_string(random_.next() % 30'000) + "}";
            if (chance(0.5)) made.headers.add("Retry-After", std::to_string(random_.next() % 3));
            break;
        case 4:
            count("429 with a queue state");
            made.body = R"({"queue_state":"paused_rate_limit","queue_state_reason":"weights"})";
            break;
        default:
            count("429");
            made.body = "slow down, " + request.header("x-api-key");
    }
    return made;
}

ModelService::Answer ModelService::client_config() {
    if (!nature_.has_config) return reply(R"({"detail":"Not Found"})", 404);
    std::string flags = R"({"unknown_flag":1)";
    auto const add = [&](std::string_view name, std::string const& value) {
        (flags += ",\"").append(name).append("\":").append(value);
    };
    auto const text = [](bool on) { return std::string{on ? "true" : "false"}; };
    add("pjwt_auth_enabled", text(nature_.tokens));
    add("sample_use_retrieve_futures", text(nature_.completion_poll));
    add("sample_no_retries", text(nature_.no_retries));
    add("sample_enable_stuck_detection", text(nature_.stuck_detection));
    add("billing_exception_max_pause_duration_sec", std::to_string(nature_.billing_limit.count()));
    if (nature_.max_concurrent) {
        add("sample_max_concurrent_requests", std::to_string(*nature_.max_concurrent));
    }
    if (nature_.dispatch_bytes) {
        add("sample_dispatch_bytes_semaphore_size", std::to_string(*nature_.dispatch_bytes));
    }
    if (nature_.download_bytes) {
        add("inflight_response_bytes_semaphore_size", std::to_string(*nature_.download_bytes));
    }
    return reply(flags + "}");
}

ModelService::Answer ModelService::dynamic_config() {
    if (!nature_.has_config) return reply(R"({"detail":"Not Found"})", 404);
    return reply(R"({"refresh_interval_sec":)" + std::to_string(random_.next() % 120) +
                 R"(,"sample_cancel_enabled":)" + (nature_.cancels ? "true" : "false") +
                 R"(,"sample_cancel_max_batch_size":)" + std::to_string(1 + random_.next() % 4) +
                 "}");
}

ModelService::Answer ModelService::auth_token() {
    count("token");
    auto const life = chance(0.3) ? 5min + span(2min) : 20min + span(2h);
    auto const expiry =
        std::chrono::duration_cast<std::chrono::seconds>(clock_.wall().time_since_epoch() + life);
    auto const claims = R"({"exp":)" + std::to_string(expiry.count()) + R"(,"n":)" +
                        std::to_string(tokens_.size()) + "}";
    tokens_.push_back("tokenhead." + wire::base64url(claims) + ".signature-" + name_);
    return reply(R"({"jwt":")" + tokens_.back() + "\"}");
}

ModelService::Answer ModelService::submit(SentRequest const& request) {
    auto const session = std::string{json_member(request.body, "sampling_session_id")};
    auto const id = session + ':' + std::string{json_member(request.body, "seq_id")};
    if (nature_.old_members && request.body.find("topk_sample_logprobs") != std::string::npos) {
        count("422");
        return reply(R"({"detail":[{"loc":["body","topk_sample_logprobs"],"msg":"extra"}]})", 422);
    }
    if (call_of(request.body) < 0) {
        complaints_.push_back("a submit without a prompt: " + id);
    }
    if (auto const known = results_.find(id); known != results_.end()) {
        count("repeat of a submit");
        if (known->second.body != request.body) {
            complaints_.push_back("a number was used again for another request: " + id);
        }
        return accept(id, known->second);
    }
    PendingResult made;
    made.body = request.body;
    made.sampling_session = session;
    made.done = clock_.now() + span(nature_.longest_sample);
    made.failed = !calm_ && chance(0.02);
    made.protobuf = chance(0.7);
    if (chance(0.1)) made.padding = random_.next() % 500;
    if (chance(0.005)) made.padding = 80'000;  // read aside
    if (!made.failed && !nature_.completion_poll && chance(0.01)) {
        count("result at once");
        return reply(result_json(made));
    }
    return accept(id, results_.emplace(id, std::move(made)).first->second);
}

ModelService::Answer ModelService::accept(std::string const& id, PendingResult const& pending) {
    std::string body = R"({"request_id":")" + id + '"';
    if (!nature_.no_sequence_ids) {
        body += R"(,"sample_sequence_ids":[)";
        auto const samples = number(json_member(pending.body, "num_samples"));
        for (std::int64_t i = 0; i < samples; ++i) {
            body += (i > 0 ? ",\"" : "\"") + id + '/' + std::to_string(i) + '"';
        }
        body += ']';
    }
    return reply(body + '}');
}

Reply ModelService::lost(std::string const& id) const {
    Reply made;
    made.status = nature_.lost_is_404 ? 404 : 410;
    made.headers = {{"Content-Type", "application/json"}};
    made.body = R"({"detail":"no request )" + id + "\"}";
    return made;
}

ModelService::Answer ModelService::poll(SentRequest const& request) {
    auto const id = std::string{json_member(request.body, "request_id")};
    auto const found = results_.find(id);
    if (found == results_.end()) {
        count(nature_.lost_is_404 ? "lost result, 404" : "lost result, 410");
        return lost(id);
    }
    if (!calm_ && chance(0.01 * storm_)) {
        results_.erase(found);
        count("result forgotten");
        return lost(id);
    }
    auto const now = clock_.now();
    auto& pending = found->second;
    bool const metadata = json_member(request.body, "allow_metadata_only") == "true";
    bool const proto = request.header("accept").find("protobuf") != std::string::npos;
    if (pending.done <= now + nature_.hold) {
        auto const wait = std::max<std::chrono::nanoseconds>(pending.done - now, 0ns);
        return finished(id, pending, metadata, proto, wait);
    }
    auto const drawn = random_.unit();
    auto made = reply("");
    made.delay += nature_.hold;
    if (drawn < 0.5) {
        count("try_again");
        made.body = R"({"type":"try_again","request_id":")" + id + R"(","queue_state":"active"})";
    } else if (drawn < 0.6) {
        count("try_again with a time");
        made.body = R"({"type":"try_again","retry_after_ms":)" +
                    std::to_string(random_.next() % 3000) + "}";
    } else if (drawn < 0.9) {
        count("408 with a queue state");
        made.status = 408;
        made.body = R"({"queue_state":"paused_capacity","queue_state_reason":"busy"})";
    } else {
        count("pending");
        made.body = R"({"status":"pending"})";
    }
    return made;
}

ModelService::Answer ModelService::finished(std::string const& id, PendingResult& pending,
                                            bool allow_metadata, bool protobuf_wanted,
                                            std::chrono::nanoseconds delay) {
    if (pending.failed || pending.cancelled) {
        count("failed request");
        auto made = reply(R"({"error":"it failed","category":"server"})");
        made.delay += delay;
        return made;
    }
    bool const proto = pending.protobuf && protobuf_wanted;
    auto body = proto ? result_proto(pending) : result_json(pending);
    if (allow_metadata && body.size() > nature_.inline_bytes) {
        count("metadata");
        auto made = reply(R"({"status":"complete_metadata","request_id":")" + id +
                          R"(","response_payload_size":)" + std::to_string(body.size()) + "}");
        made.delay += delay;
        return made;
    }
    count(proto ? "protobuf result" : "JSON result");
    auto made = reply(std::move(body));
    if (proto) made.headers = {{"Content-Type", "application/x-protobuf"}};
    made.delay += delay;
    return made;
}

std::string ModelService::result_json(PendingResult const& pending) const {
    auto const tokens = tokens_of(pending.body);
    auto const samples = number(json_member(pending.body, "num_samples"));
    std::string out = R"({"sequences":[)";
    for (std::int64_t i = 0; i < samples; ++i) {
        if (i > 0) out += ',';
        out += R"({"stop_reason":"stop","tokens":[)" + std::to_string(call_of(pending.body)) + ',' +
               std::to_string(i) + R"(],"logprobs":[-0.5,-0.25]})";
    }
    out += ']';
    if (json_member(pending.body, "prompt_logprobs") == "true") {
        out += R"(,"prompt_logprobs":[null)";
        auto const rest = std::ranges::count(tokens, ',');
        for (std::ptrdiff_t i = 0; i < rest; ++i) out += ",-1.5";
        out += ']';
    }
    if (pending.padding > 0) out += R"(,"note":")" + std::string(pending.padding, 'x') + '"';
    return out + R"(,"type":"sample"})";
}

std::string ModelService::result_proto(PendingResult const& pending) const {
    std::string out;
    auto const samples = number(json_member(pending.body, "num_samples"));
    for (std::int64_t i = 0; i < samples; ++i) {
        std::string sequence;
        append_bytes(sequence, 2,
                     packed<std::int32_t>({call_of(pending.body), static_cast<std::int32_t>(i)}));
        append_bytes(sequence, 3, packed<float>({-0.5F, -0.25F}));
        append_bytes(out, 1, sequence);
    }
    if (json_member(pending.body, "prompt_logprobs") == "true") {
        auto const rest = std::ranges::count(tokens_of(pending.body), ',');
        std::vector<float> logprobs(static_cast<std::size_t>(rest) + 1, -1.5F);
        logprobs.front() = std::numeric_limits<float>::quiet_NaN();
        append_bytes(out, 2, packed(logprobs));
    }
    if (pending.padding > 0) append_bytes(out, 1000, std::string(pending.padding, 'x'));
    return out;
}

ModelService::Answer ModelService::completions(SentRequest const& request) {
    if (nature_.completion_poll_missing) {
        count("no completion polls");
        return reply(R"({"detail":"Not Found"})", 404);
    }
    auto const now = clock_.now();
    auto const session = std::string{json_member(request.body, "sampling_session_id")};
    auto const cursor = static_cast<std::size_t>(number(json_member(request.body, "prev_cursor")));
    auto& log = logs_[session];
    // What will be done while this poll is held is put on the stream in advance.
    std::vector<std::pair<TimePoint, std::string>> done;
    for (auto& [id, pending] : results_) {
        if (pending.announced || pending.sampling_session != session) continue;
        if (pending.done <= now + nature_.hold) done.emplace_back(pending.done, id);
    }
    std::ranges::sort(done);
    for (auto const& [when, id] : done) {
        auto& pending = results_[id];
        pending.announced = true;
        auto const size = pending.protobuf ? result_proto(pending).size() : 0;
        log.push_back({.request_id = id, .visible = when, .failed = pending.failed, .size = size});
    }
    if (cursor > log.size()) {
        complaints_.push_back("a cursor that was never given: " + std::to_string(cursor));
        return reply(R"({"detail":"bad cursor"})", 400);
    }
    auto made = reply("");
    auto end = cursor;
    auto latest = now;
    if (cursor < log.size() && log[cursor].visible > now) latest = log[cursor].visible;
    while (end < log.size() && log[end].visible <= latest) ++end;
    std::string list;
    for (auto i = cursor; i < end; ++i) {
        auto const& event = log[i];
        list += (i > cursor ? "," : "") + std::string{R"({"state":")"} +
                (event.failed ? "failed" : "finished") + R"(","request_id":")" + event.request_id +
                '"';
        if (event.size > 0) {
            list += R"(,"response_payload_uncompressed_size":)" + std::to_string(event.size);
        }
        list += '}';
    }
    count(end > cursor ? "completions" : "no completions");
    made.delay += end > cursor ? latest - now : nature_.hold;
    made.body = R"({"completions":[)" + list + R"(],"cursor":)" + std::to_string(end) + "}";
    return made;
}

ModelService::Answer ModelService::cancel(SentRequest const& request) {
    count("cancel_future");
    if (!nature_.cancels) complaints_.emplace_back("a cancel though there are none");
    auto const found = results_.find(std::string{json_member(request.body, "request_id")});
    if (found == results_.end()) return reply(R"({"detail":"Not Found"})", 404);
    found->second.cancelled = true;
    return reply("{}");
}

}  // namespace tinkxx::simulation
