#include "golden/replay/stub_service.hpp"

#include "golden/recordings/golden.hpp"
#include "golden/recordings/pass_body.hpp"
#include "support/logging_runtime.hpp"
#include "wire/json/base64.hpp"
#include "wire/server/answers.hpp"

#include <gtest/gtest.h>
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

std::string signed_token(boost::json::object const& claims) {
    return wire::base64url(R"({"alg":"none","typ":"JWT"})") + '.' +
           wire::base64url(boost::json::serialize(claims)) + ".c2ln";
}

/// A token of the one who asked who he is, else of anybody.
std::string token_for(value const& recording) {
    boost::json::object claims{{"exp", 1900000000},
                               {"iss", "passport-test"},
                               {"org_id", "org-1"},
                               {"sub", "tml:organization_user:u-1"},
                               {"email", "ada@example.com"}};
    auto const* result = find(recording, "result");
    if (member<std::string>(recording, "call") == "RestClient.whoami" && result != nullptr) {
        claims["sub"] = text(*result, "user_urn");
        claims["email"] = value(result->at("email"));
        if (claims["email"].is_null()) claims.erase("email");
        if (auto const org = member<std::string>(*result, "org_urn")) {
            claims["org_id"] = org->substr(org->rfind(':') + 1);
        }
    }
    return signed_token(claims);
}

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
      token_{token_for(recording)},
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

void StubService::script(std::string const& place, Reply reply, int times) {
    script_[place].emplace_back(std::move(reply), times);
}

namespace {

/// Where an answer is given: the path, and what was asked about.
std::string place_of(std::string const& path, std::string const& subject) {
    return subject.empty() ? path : path + ' ' + subject;
}

std::string promise_of(std::string const& kind, std::optional<std::int64_t> number) {
    return "of " + kind + (number ? ' ' + std::to_string(*number) : std::string{});
}

/// Whether an answer is recorded by its length and hash only: then it is the usual one.
bool usual_answer(value const& response) {
    return find(response, "body_length") != nullptr && find(response, "body_text") == nullptr &&
           find(response, "body_base64") == nullptr;
}

}  // namespace

void StubService::script_request(value const& request) {
    auto const path = text(request, "path");
    auto const subject = subject_of(request);
    auto const& response = request.at("response");
    if (usual_answer(response)) {
        // JSON may be spaced in any way.
        if (text(response, "content_type") == "application/x-protobuf") {
            lengths_[subject] = value_to<std::size_t>(response.at("body_length"));
        }
        return;
    }
    script(place_of(path.substr(0, path.find('?')), subject), reply_of(response));
}

void StubService::script_requests(value const& recording) {
    for (auto const& request : recording.at("requests").as_array()) script_request(request);
}

void StubService::script_answers(value const& recording) {
    for (auto const& rule : recording.at("answers").as_array()) {
        auto const kind = member<std::string>(rule, "of");
        auto const subject =
            kind ? promise_of(*kind, member<std::int64_t>(rule, "seq_id")) : std::string{};
        for (auto const& step : rule.at("then").as_array()) {
            script(place_of(text(rule, "to"), subject), reply_of(step.at("answer")),
                   value_to<int>(step.at("times")));
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
    auto reply = scripted(request);
    if (!reply) return usual(request);
    // Transports follow redirects, and this one has none to do so.
    bool const follows = request.redirects == Redirects::follow;
    if (follows && (reply->status == 302 || reply->status == 307)) {
        auto hop = request;
        hop.path = *reply->headers.find("Location");
        if (reply->status == 302) hop.method = "GET";
        return answer(hop);
    }
    keep_result_of_pass(request, *reply);
    return reply;
}

/// The places of the script that have an answer to a request, the one that knows it best first.
std::vector<std::string> StubService::places(SentRequest const& request) const {
    auto const subject = subject_of(request);
    std::vector<std::string> out{place_of(request.path, subject)};
    if (request.path.ends_with("/retrieve_future")) {
        auto const found = promised_.find(subject);
        auto const of = found == promised_.end() ? promise_of("unknown", {}) : found->second;
        out.push_back(place_of(request.path, of));
        out.push_back(place_of(request.path, of.substr(0, of.find(' ', 3))));
    }
    out.push_back(request.path);
    return out;
}

std::optional<Reply> StubService::scripted(SentRequest const& request) {
    for (auto const& place : places(request)) {
        auto const found = script_.find(place);
        if (found == script_.end() || found->second.empty()) continue;
        auto& steps = found->second;
        auto reply = steps.front().first;
        if (--steps.front().second == 0) steps.pop_front();
        return reply;
    }
    return std::nullopt;
}

void StubService::keep_result_of_pass(SentRequest const& request, Reply const& accepted) {
    if (accepted.status != 200) return;
    auto const pass = pass_of(request);
    if (!pass) return;
    auto const output = answer_to(pass->data);
    Reply reply;
    if (version_ == "0.7.0") {
        reply.headers.add("Content-Type", "application/json");
        reply.body = wire::server::encode_forward_backward_json(output);
    } else {
        reply.headers.add("Content-Type", "application/x-protobuf");
        reply.body = wire::server::encode_forward_backward_proto(output);
    }
    results_["promise " + text(boost::json::parse(accepted.body), "request_id")] = std::move(reply);
}

Reply StubService::result_of(std::string const& promise) const {
    auto const found = results_.find(promise);
    if (found == results_.end()) return json_reply(boost::json::object{});
    if (auto const length = lengths_.find(promise); length != lengths_.end()) {
        EXPECT_EQ(found->second.body.size(), length->second) << "the answer to " << promise;
    }
    return found->second;
}

Reply StubService::result_of_samples(std::int64_t count) const {
    if (version_ == "0.7.0") {
        boost::json::object const sequence{
            {"stop_reason", "stop"}, {"tokens", {100, 101}}, {"logprobs", {-0.5, -0.25}}};
        boost::json::array sequences;
        for (auto i = count; i > 0; --i) sequences.push_back(sequence);
        return json_reply(boost::json::object{{"sequences", sequences}, {"type", "sample"}});
    }
    Reply reply;
    reply.headers.add("Content-Type", "application/x-protobuf");
    for (auto i = count; i > 0; --i) reply.body += sequence_bytes;
    return reply;
}

Reply StubService::promise(SentRequest const& request, Reply result) {
    auto const id = "req-" + std::to_string(promises_++);
    auto kind = request.path.substr(request.path.rfind('/') + 1);
    if (kind == "asample") kind = "sample";
    if (kind == "forward") kind = "forward_backward";
    auto const body = boost::json::object{{"request_id", id}};
    auto const subject = subject_of(request);
    std::optional<std::int64_t> number;
    if (subject.starts_with("number ")) number = std::stoll(subject.substr(7));
    promised_["promise " + id] = promise_of(kind, number);
    results_["promise " + id] = std::move(result);
    auto reply = json_reply(body);
    keep_result_of_pass(request, reply);
    return reply;
}

std::optional<Reply> StubService::usual(SentRequest const& request) {
    auto const root = request.path.find("/api/v1/");
    auto const path = root == std::string::npos ? "" : request.path.substr(root + 8);
    auto const body = [&request] { return boost::json::parse(request.body); };
    auto const promised = [&](value const& result) { return promise(request, json_reply(result)); };
    if (path == "client/config") return json_reply(flags_);
    if (path == "client/dynamic_config") return json_reply(dynamic_);
    if (path == "auth/token") return json_reply({{"jwt", token_}});
    if (path == "create_session") {
        return json_reply({{"type", path}, {"session_id", session_id_}});
    }
    if (path == "session_heartbeat") return json_reply({{"type", path}});
    if (path == "create_sampling_session") {
        auto const id =
            session_id_ + ":sample:" +
            std::to_string(value_to<std::int64_t>(body().at("sampling_session_seq_id")));
        return json_reply({{"type", path}, {"sampling_session_id", id}});
    }
    if (path == "asample") {
        auto const count = member<std::int64_t>(body(), "num_samples").value_or(1);
        auto const made =
            boost::json::parse(promise(request, result_of_samples(count)).body).as_object();
        auto const id = text(made, "request_id");
        boost::json::array ids;
        for (std::int64_t i = 0; i < count; ++i) ids.emplace_back(id + "-seq-" + std::to_string(i));
        return json_reply({{"request_id", id}, {"sample_sequence_ids", ids}});
    }
    if (path == "retrieve_future") return result_of(subject_of(request));
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
        return promised({{"model_id", session_id_ + ":train:" + std::to_string(seq)}});
    }
    if (path == "optim_step") return promised({{"metrics", nullptr}});
    if (path == "save_weights") {
        return promised({{"path", "tinker://" + text(body(), "model_id") + "/weights/" +
                                      text(body(), "path")}});
    }
    if (path == "save_weights_for_sampler") {
        auto const name = member<std::string>(body(), "path").value_or("");
        return promised(
            {{"path", "tinker://" + text(body(), "model_id") + "/sampler_weights/" + name}});
    }
    if (path == "load_weights") return promised({{"type", path}});
    if (path == "forward_backward" || path == "forward") return promise(request, {});
    if (path.starts_with("training_runs/")) {
        // What is changed there is told by its status alone.
        if (path.find('/', 14) != std::string::npos) return Reply{.status = 204};
        return json_reply({{"training_run_id", path.substr(14)},
                           {"base_model", "org/tiny"},
                           {"model_owner", "owner-1"},
                           {"is_lora", true},
                           {"corrupted", false},
                           {"lora_rank", 8},
                           {"last_request_time", "2026-01-02T03:04:05.678901+00:00"},
                           {"last_checkpoint", nullptr},
                           {"last_sampler_checkpoint", nullptr},
                           {"user_metadata", nullptr}});
    }
    return json_reply({{"detail", "Not Found"}}, 404);
}

}  // namespace tinkxx::golden
