#include "support/fake_tinker.hpp"

#include "support/logging_runtime.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace tinkxx::support {

namespace {

std::string text(boost::json::object const& object, std::string_view member) {
    auto const* value = object.if_contains(member);
    return value != nullptr && value->is_string() ? std::string{value->as_string()} : std::string{};
}

}  // namespace

testing::Reply json_reply(std::string body, int status) {
    testing::Reply reply;
    reply.status = status;
    reply.headers = {{"Content-Type", "application/json"}};
    reply.body = std::move(body);
    return reply;
}

FakeTinker::FakeTinker(std::uint64_t seed)
    : log_{std::make_shared<std::vector<std::string>>()},
      clock{std::make_shared<testing::ManualClock>(
          testing::ManualClockOptions{.seed = seed, .auto_advance = true})},
      transport{std::make_shared<testing::FakeTransport>(*clock)},
      runtime{logging_runtime(clock, log_)} {
    transport->otherwise([this](testing::SentRequest const& request) { return answer(request); });
}

ClientOptions FakeTinker::options() const {
    ClientOptions options;
    options.base_url = "http://tinker.test";
    options.api_key = "tml-test-key";
    options.telemetry = false;
    options.transport = transport;
    options.runtime = runtime;
    return options;
}

std::vector<std::int64_t> FakeTinker::submitted_seq_ids() const {
    std::vector<std::int64_t> ids;
    ids.reserve(submits_.size());
    for (auto const& submit : submits_) ids.push_back(submit.seq_id);
    return ids;
}

std::size_t FakeTinker::count(std::string_view path) const { return transport->sent(path).size(); }

std::size_t FakeTinker::logged(std::string_view text) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        *log_, [&](std::string const& line) { return line.find(text) != std::string::npos; }));
}

std::optional<testing::Reply> FakeTinker::answer(testing::SentRequest const& request) {
    constexpr std::string_view root = "/api/v1/";
    auto const path = request.path.starts_with(root) ? request.path.substr(root.size()) : "";
    if (path == "asample") {
        Submit submit;
        submit.body = boost::json::parse(request.body).as_object();
        submit.seq_id = submit.body.at("seq_id").as_int64();
        submit.sampling_session_id = text(submit.body, "sampling_session_id");
        submit.at = clock->now();
        submit.call = request.call;
        submits_.push_back(submit);
        if (on_submit) {
            if (auto reply = on_submit(submit)) return reply;
        }
        auto const id = "req-" + std::to_string(submit.seq_id);
        auto const* asked = submit.body.if_contains("num_samples");
        auto const samples = asked != nullptr ? asked->as_int64() : 1;
        boost::json::array ids;
        for (std::int64_t i = 0; i < samples; ++i) ids.emplace_back(id + '/' + std::to_string(i));
        return json_reply(boost::json::serialize(
            boost::json::object{{"request_id", id}, {"sample_sequence_ids", ids}}));
    }
    if (path == "retrieve_future") {
        auto const body = boost::json::parse(request.body).as_object();
        auto const iteration = request.header("X-Tinker-Request-Iteration");
        std::int64_t number = 0;
        std::from_chars(iteration.data(), iteration.data() + iteration.size(), number);
        if (on_poll) {
            if (auto reply = on_poll(text(body, "request_id"), number)) return reply;
        }
        return json_reply(result);
    }
    if (on_other) {
        if (auto reply = on_other(request)) return reply;
    }
    if (path == "client/config") return json_reply(boost::json::serialize(flags));
    if (path == "client/dynamic_config") return json_reply(boost::json::serialize(dynamic_flags));
    if (path == "create_session") {
        return json_reply(R"({"session_id":"session-1","type":"create_session"})");
    }
    if (path == "create_sampling_session") {
        auto const body = boost::json::parse(request.body).as_object();
        return json_reply(boost::json::serialize(boost::json::object{
            {"sampling_session_id",
             "session-1:sample:" +
                 std::to_string(body.at("sampling_session_seq_id").as_int64())}}));
    }
    if (path == "session_heartbeat" || path.ends_with("/finish") || path == "cancel_future") {
        return json_reply("{}");
    }
    if (path == "healthz") return json_reply(R"({"status":"ok"})");
    if (path == "telemetry") return json_reply(R"({"status":"accepted"})");
    if (path.starts_with("samplers/")) {
        return json_reply(R"({"sampler_id":"x","base_model":"org/tiny"})");
    }
    if (path == "get_server_capabilities") {
        return json_reply(R"({"supported_models":[{"model_name":"org/tiny"}]})");
    }
    return json_reply(R"({"detail":"Not Found"})", 404);
}

}  // namespace tinkxx::support
