#include "stub_service.hpp"

#include "golden.hpp"
#include "support/logging_runtime.hpp"

#include <unistd.h>
#include <algorithm>
#include <cstdlib>

namespace tinkxx::golden {

using testing::Reply;
using testing::SentRequest;

// Circumstances -----------------------------------------------------------------------------------

namespace {

bool read_by_clients(std::string_view name) {
    return (name.starts_with("TINKER_") || name.starts_with("TINKXX_") ||
            name.starts_with("CLOUDFLARE_")) &&
           name != "TINKXX_GOLDEN_WIRE";
}

}  // namespace

Circumstances::Circumstances(std::map<std::string, std::string> const& variables) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
        std::string_view const line{*entry};
        auto const equals = line.find('=');
        if (equals == std::string_view::npos || !read_by_clients(line.substr(0, equals))) continue;
        before_.emplace(line.substr(0, equals), line.substr(equals + 1));
    }
    for (auto const& [name, old] : before_) ::unsetenv(name.c_str());
    for (auto const& [name, given] : variables) {
        ::setenv(name.c_str(), given.c_str(), 1);
        set_.push_back(name);
    }
}

Circumstances::~Circumstances() {
    for (auto const& name : set_) ::unsetenv(name.c_str());
    for (auto const& [name, old] : before_) ::setenv(name.c_str(), old.c_str(), 1);
}

// The server --------------------------------------------------------------------------------------

namespace {

constexpr auto token =
    "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0."
    "eyJleHAiOjE5MDAwMDAwMDAsImlzcyI6InBhc3Nwb3J0LXRlc3QiLCJvcmdfaWQiOiJvcmctMSIsInN1YiI6InRtbDpvcm"
    "dh"
    "bml6YXRpb25fdXNlcjp1LTEiLCJlbWFpbCI6ImFkYUBleGFtcGxlLmNvbSJ9.c2ln";

/// A sequence of the tokens 100 and 101, as protobuf.
constexpr std::string_view sequence_bytes{
    "\x0a\x14\x12\x08\x64\0\0\0\x65\0\0\0\x1a\x08\0\0\0\xbf\0\0\x80\xbe", 22};

Reply json_reply(boost::json::value const& body, int status = 200) {
    Reply reply;
    reply.status = status;
    reply.headers.add("Content-Type", "application/json");
    reply.body = boost::json::serialize(body);
    return reply;
}

bool by_itself(std::string_view path) {
    for (auto const* end : {"/client/config", "/client/dynamic_config", "/auth/token",
                            "/session_heartbeat", "/telemetry"}) {
        if (path.ends_with(end)) return true;
    }
    return false;
}

void merge(boost::json::object& into, value const* more) {
    if (more == nullptr) return;
    for (auto const& entry : more->as_object()) into[entry.key()] = entry.value();
}

}  // namespace

std::string target(SentRequest const& request) {
    return request.query.empty() ? request.path : request.path + '?' + request.query;
}

StubService::StubService(value const& recording)
    : version_{member<std::string>(recording, "sdk_version").value_or(newest)},
      clock{std::make_shared<testing::ManualClock>(
          testing::ManualClockOptions{.auto_advance = true})},
      transport{std::make_shared<testing::FakeTransport>(*clock)},
      runtime{support::logging_runtime(clock, lines_)} {
    std::map<std::string, std::string> variables{{"TINKER_API_KEY", "tml-golden"},
                                                 {"TINKER_TELEMETRY", "0"}};
    if (auto const* env = find(recording, "env")) {
        for (auto const& entry : env->as_object()) {
            variables[entry.key()] = value_to<std::string>(entry.value());
        }
    }
    runs_command_ = variables.contains("TINKER_CREDENTIAL_CMD");
    circumstances_.emplace(variables);
    if (auto const given = member<std::string>(recording, "base_path")) base_path_ = *given;
    if (version_ == "0.7.0") flags_["parallel_fwdbwd_chunks"] = false;
    merge(flags_, find(recording, "client_config"));
    merge(dynamic_, find(recording, "dynamic_config"));
    transport->otherwise([this](SentRequest const& request) { return answer(request); });
}

ClientOptions StubService::options() const {
    ClientOptions options;
    options.base_url = "http://host" + base_path_;
    options.sdk_version = version_;
    options.transport = transport;
    options.runtime = runtime;
    return options;
}

void StubService::script(std::string const& path, Reply reply, int times) {
    script_[path].emplace_back(std::move(reply), times);
}

void StubService::script_request(value const& request) {
    auto const path = text(request, "path");
    script(path.substr(0, path.find('?')), reply_of(request.at("response")));
}

void StubService::script_requests(value const& recording) {
    for (auto const& request : recording.at("requests").as_array()) script_request(request);
}

void StubService::script_answers(value const& recording) {
    auto const& answers = recording.at("answers").as_array();
    std::vector<value> rules{answers.begin(), answers.end()};
    // The first of several chunks is submitted, and asked for, last (R-TRAIN-32).
    std::ranges::stable_sort(rules, {}, [&rules](value const& rule) {
        return rules.size() > 1 && member<int>(rule, "seq_id") == 1;
    });
    for (auto const& rule : rules) {
        for (auto const& step : rule.at("then").as_array()) {
            script(text(rule, "to"), reply_of(step.at("answer")), value_to<int>(step.at("times")));
        }
    }
}

std::vector<SentRequest> StubService::seen(std::set<std::string> const& wanted) const {
    std::vector<SentRequest> out;
    for (std::size_t i = marked_; i < log_.size(); ++i) {
        auto const& request = log_[i];
        if (by_itself(request.path) && !wanted.contains(request.path)) continue;
        out.push_back(request);
    }
    return out;
}

std::optional<Reply> StubService::answer(SentRequest const& request) {
    if (refuse_newest_ && request.path.ends_with("/asample")) {
        refuse_newest_ = false;
        return json_reply(
            {{"detail", {{{"loc", {"body", "topk_sample_logprobs"}}, {"msg", "not permitted"}}}}},
            422);
    }
    if (refuse_newest_ && request.path.ends_with("/create_model")) {
        refuse_newest_ = false;
        return json_reply(
            {{"detail", {{{"loc", {"body", "optimizer_config"}}, {"msg", "not permitted"}}}}}, 422);
    }
    log_.push_back(request);
    if (held_.contains(request.path)) return std::nullopt;
    auto& steps = script_[request.path];
    if (steps.empty()) return usual(request);
    auto reply = steps.front().first;
    if (--steps.front().second == 0) steps.pop_front();
    // Transports follow redirects, and this one has none to do so.
    if (reply.status == 302 || reply.status == 307) {
        auto hop = request;
        hop.path = *reply.headers.find("Location");
        if (reply.status == 302) hop.method = "GET";
        return answer(hop);
    }
    return reply;
}

Reply StubService::result_of(std::string const& request_id) const {
    auto const found = samples_.find(request_id);
    if (auto const other = results_.find(request_id); other != results_.end()) {
        return json_reply(other->second);
    }
    if (found == samples_.end()) return json_reply(boost::json::object{});
    if (version_ == "0.7.0") {
        boost::json::object const sequence{
            {"stop_reason", "stop"}, {"tokens", {100, 101}}, {"logprobs", {-0.5, -0.25}}};
        boost::json::array sequences;
        for (auto i = found->second; i > 0; --i) sequences.push_back(sequence);
        return json_reply(boost::json::object{{"sequences", sequences}, {"type", "sample"}});
    }
    Reply reply;
    reply.headers.add("Content-Type", "application/x-protobuf");
    for (auto i = found->second; i > 0; --i) reply.body += sequence_bytes;
    return reply;
}

Reply StubService::promise(boost::json::value result) {
    auto const id = "req-" + std::to_string(promises_++);
    results_[id] = std::move(result);
    return json_reply({{"request_id", id}});
}

std::optional<Reply> StubService::usual(SentRequest const& request) {
    auto const root = request.path.find("/api/v1/");
    auto const path = root == std::string::npos ? "" : request.path.substr(root + 8);
    auto const body = [&request] { return boost::json::parse(request.body); };
    if (path == "client/config") return json_reply(flags_);
    if (path == "client/dynamic_config") return json_reply(dynamic_);
    if (path == "auth/token") return json_reply({{"jwt", token}});
    if (path == "create_session") {
        return json_reply({{"type", path}, {"session_id", session_id_}});
    }
    if (path == "session_heartbeat") return json_reply({{"type", path}});
    if (path == "create_sampling_session") {
        auto id = std::exchange(sampler_, {});
        if (id.empty()) {
            id = session_id_ + ":sample:" +
                 std::to_string(value_to<std::int64_t>(body().at("sampling_session_seq_id")));
        }
        return json_reply({{"type", path}, {"sampling_session_id", id}});
    }
    if (path == "asample") {
        auto const id = "req-" + std::to_string(promises_++);
        auto const count = member<std::int64_t>(body(), "num_samples").value_or(1);
        samples_[id] = count;
        boost::json::array ids;
        for (std::int64_t i = 0; i < count; ++i) ids.emplace_back(id + "-seq-" + std::to_string(i));
        return json_reply({{"request_id", id}, {"sample_sequence_ids", ids}});
    }
    if (path == "retrieve_future") return result_of(text(body(), "request_id"));
    if (path == "retrieve_futures") return std::nullopt;  // nothing new: it waits
    if (path == "cancel_future") return json_reply(boost::json::object{});
    if (path.starts_with("samplers/")) {
        return json_reply({{"sampler_id", path.substr(9)}, {"base_model", "org/tiny"}});
    }
    if (path == "get_server_capabilities") {
        return json_reply({{"supported_models", {{{"model_name", "org/tiny"}}}}});
    }
    if (path == "healthz") return json_reply({{"status", "ok"}});
    if (path == "telemetry") return json_reply({{"status", "accepted"}});
    if (path == "create_model") {
        auto const seq = value_to<std::int64_t>(body().at("model_seq_id"));
        return promise({{"model_id", session_id_ + ":train:" + std::to_string(seq)}});
    }
    if (path == "optim_step") return promise({{"metrics", nullptr}});
    if (path == "save_weights") {
        return promise({{"path", "tinker://" + text(body(), "model_id") + "/weights/" +
                                     text(body(), "path")}});
    }
    if (path == "save_weights_for_sampler") {
        auto const name = member<std::string>(body(), "path").value_or("");
        return promise(
            {{"path", "tinker://" + text(body(), "model_id") + "/sampler_weights/" + name}});
    }
    if (path == "load_weights") return promise({{"type", path}});
    if (path == "forward_backward" || path == "forward") {
        return promise({{"loss_fn_output_type", "CrossEntropyLossReturn"},
                        {"loss_fn_outputs", boost::json::array{}},
                        {"metrics", boost::json::object{}}});
    }
    return json_reply({{"detail", "Not Found"}}, 404);
}

}  // namespace tinkxx::golden
