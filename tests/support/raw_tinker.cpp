#include "support/raw_tinker.hpp"

#include "support/logging_runtime.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace tinkxx::support {

using namespace std::string_view_literals;

namespace {

std::string text(boost::json::object const& object, std::string_view member) {
    auto const* value = object.if_contains(member);
    return value != nullptr && value->is_string() ? std::string{value->as_string()} : std::string{};
}

/// Reads the top level of a protobuf message: what a fake needs to know of a pass.
void read_pass(std::string_view bytes, TrainSubmit& submit) {
    auto const varint = [&bytes] {
        std::uint64_t value = 0;
        for (unsigned shift = 0; !bytes.empty() && shift < 64; shift += 7) {
            auto const byte = static_cast<unsigned char>(bytes.front());
            bytes.remove_prefix(1);
            value |= std::uint64_t{byte & 0x7fU} << shift;
            if (byte < 0x80) break;
        }
        return value;
    };
    while (!bytes.empty()) {
        auto const tag = varint();
        auto const field = tag >> 3U;
        if ((tag & 7U) == 0) {
            auto const value = varint();
            if (field == 2) submit.seq_id = static_cast<std::int64_t>(value);
            if (field == 6) submit.forward_only = value != 0;
        } else {
            auto const told = varint();
            auto const size = std::min<std::size_t>(told, bytes.size());
            if (field == 1) submit.model_id = bytes.substr(0, size);
            if (field == 3) ++submit.data;
            bytes.remove_prefix(size);
        }
    }
}

constexpr std::array training_paths{
    "create_model"sv, "forward_backward"sv,      "forward"sv,
    "optim_step"sv,   "save_weights"sv,          "save_weights_for_sampler"sv,
    "load_weights"sv, "save_weights_external"sv, "unload_model"sv};

}  // namespace

testing::Reply json_reply(std::string body, int status) {
    testing::Reply reply;
    reply.status = status;
    reply.headers = {{"Content-Type", "application/json"}};
    reply.body = std::move(body);
    return reply;
}

RawTinker::RawTinker(std::uint64_t seed)
    : log_{std::make_shared<std::vector<std::string>>()},
      clock{std::make_shared<testing::ManualClock>(
          testing::ManualClockOptions{.seed = seed, .auto_advance = true})},
      transport{std::make_shared<testing::FakeTransport>(*clock)},
      runtime{logging_runtime(clock, log_)} {
    transport->otherwise([this](testing::SentRequest const& request) { return answer(request); });
}

ClientOptions RawTinker::options() const {
    ClientOptions options;
    options.base_url = "http://tinker.test";
    options.api_key = "tml-test-key";
    options.telemetry = false;
    options.transport = transport;
    options.runtime = runtime;
    return options;
}

std::vector<std::int64_t> RawTinker::submitted_seq_ids() const {
    std::vector<std::int64_t> ids;
    ids.reserve(submits_.size());
    for (auto const& submit : submits_) ids.push_back(submit.seq_id);
    return ids;
}

std::vector<std::string> RawTinker::trained_steps() const {
    std::vector<std::string> steps;
    for (auto const& submit : trained_) {
        if (submit.path == "create_model") continue;
        steps.push_back(submit.path + ' ' + std::to_string(submit.seq_id));
    }
    return steps;
}

std::size_t RawTinker::count(std::string_view path) const { return transport->sent(path).size(); }

std::size_t RawTinker::logged(std::string_view text) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        *log_, [&](std::string const& line) { return line.find(text) != std::string::npos; }));
}

std::optional<testing::Reply> RawTinker::answer(testing::SentRequest const& request) {
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
        if (auto const found = promised_.find(text(body, "request_id")); found != promised_.end()) {
            return json_reply(found->second);
        }
        return json_reply(result);
    }
    if (on_other) {
        if (auto reply = on_other(request)) return reply;
    }
    if (std::ranges::find(training_paths, path) != training_paths.end()) {
        return train(request, path);
    }
    if (path == "weights_info") {
        return json_reply(R"({"base_model":"org/tiny","is_lora":true,"lora_rank":8,)"
                          R"("train_unembed":false,"train_mlp":true,"train_attn":null})");
    }
    if (path == "get_info") {
        return json_reply(R"({"model_id":"session-1:train:0","is_lora":true,"lora_rank":8,)"
                          R"("model_name":"org/tiny","model_data":{"arch":"llama",)"
                          R"("model_name":"org/tiny","tokenizer_id":"org/tiny:rev"}})");
    }
    if (path == "copy_weights") {
        return json_reply(R"({"tinker_path":"tinker://copy:train:0/weights/a"})");
    }
    if (path == "auth/token") return json_reply(R"({"jwt":"a.b.c"})");
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

std::optional<testing::Reply> RawTinker::train(testing::SentRequest const& request,
                                               std::string path) {
    TrainSubmit submit;
    submit.path = std::move(path);
    submit.bytes = request.body;
    submit.at = clock->now();
    submit.call = request.call;
    submit.protobuf = request.header("Content-Type") == "application/x-protobuf";
    if (submit.protobuf) {
        read_pass(request.body, submit);
    } else {
        submit.json = boost::json::parse(request.body).as_object();
        submit.model_id = text(submit.json, "model_id");
        if (auto const* seq = submit.json.if_contains("seq_id")) submit.seq_id = seq->as_int64();
        submit.forward_only = submit.path == "forward";
        for (auto const* member : {"forward_backward_input", "forward_input"}) {
            if (auto const* input = submit.json.if_contains(member)) {
                submit.data = input->at("data").as_array().size();
            }
        }
    }
    trained_.push_back(submit);
    if (on_train) {
        if (auto reply = on_train(submit)) return reply;
    }
    auto id = submit.path == "create_model" ? "model-" : "train-";
    auto const request_id =
        id + std::to_string(submit.seq_id != 0 ? submit.seq_id
                                               : static_cast<std::int64_t>(trained_.size()));
    std::string made;
    if (train_result) made = train_result(submit);
    promised_[request_id] = made.empty() ? default_result(submit) : std::move(made);
    return json_reply(boost::json::serialize(boost::json::object{{"request_id", request_id}}));
}

std::string RawTinker::default_result(TrainSubmit const& submit) const {
    boost::json::object made;
    auto const name = text(submit.json, "path");
    if (submit.path == "create_model") {
        made["model_id"] =
            "session-1:train:" + std::to_string(submit.json.at("model_seq_id").as_int64());
        made["type"] = "create_model";
    } else if (submit.path == "forward_backward" || submit.path == "forward") {
        boost::json::array outputs;
        for (std::size_t i = 0; i < submit.data; ++i) {
            outputs.push_back(boost::json::object{
                {"logprobs", boost::json::object{{"data", boost::json::array{-0.25, -0.5}},
                                                 {"dtype", "float32"},
                                                 {"shape", boost::json::array{2}}}}});
        }
        made["loss_fn_output_type"] = "CrossEntropyLossReturn";
        made["loss_fn_outputs"] = std::move(outputs);
        made["metrics"] = boost::json::object{{"loss:sum", 1.5 * static_cast<double>(submit.data)}};
    } else if (submit.path == "optim_step") {
        made["metrics"] = nullptr;
    } else if (submit.path == "save_weights") {
        made["path"] = "tinker://" + submit.model_id + "/weights/" + name;
    } else if (submit.path == "save_weights_external") {
        made["path"] = "tinker://" + submit.model_id + "/external_weights/" + name;
    } else if (submit.path == "save_weights_for_sampler" && !name.empty()) {
        made["path"] = "tinker://" + submit.model_id + "/sampler_weights/" + name;
    } else if (submit.path == "save_weights_for_sampler") {
        made["path"] = nullptr;
        made["sampling_session_id"] =
            "session-1:sample:" +
            std::to_string(submit.json.at("sampling_session_seq_id").as_int64());
    } else if (submit.path == "unload_model") {
        made["model_id"] = submit.model_id;
    } else {
        made["type"] = submit.path;
    }
    return boost::json::serialize(made);
}

}  // namespace tinkxx::support
