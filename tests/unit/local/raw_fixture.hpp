#pragma once

#include <tinkxx/http_client.hpp>

#include "local_fixture.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <string>
#include <utility>

namespace tinkxx::local {

/// Requests as they are on the wire, without the client's help.
class RawTest : public LocalTest {
protected:
    HttpClient& http() {
        if (!http_) {
            ClientOptions options;
            options.base_url = Server::base_url();
            options.api_key = "tml-test";
            options.transport = server().transport();
            options.runtime = runtime;
            options.max_retries = 0;
            http_.emplace(options);
        }
        return *http_;
    }
    Future<HttpResponse> start(std::string method, std::string const& path, std::string body = {},
                               Headers headers = {}) {
        HttpRequest request;
        request.method = std::move(method);
        request.path = path.starts_with('/') ? path : "/api/v1/" + path;
        request.body = std::move(body);
        request.headers = std::move(headers);
        request.fail_on_status = false;
        request.redirects = Redirects::none;
        request.timeouts = Timeouts{.read = std::chrono::seconds{45}};
        return http().send(std::move(request));
    }
    HttpResponse call(std::string method, std::string const& path, std::string body = {},
                      Headers headers = {}) {
        return start(std::move(method), path, std::move(body), std::move(headers)).get();
    }
    HttpResponse post(std::string const& path, std::string body) {
        return call("POST", path, std::move(body));
    }
    static boost::json::object json(HttpResponse const& response) {
        return boost::json::parse(response.body).as_object();
    }
    static std::string text(boost::json::object const& object, std::string_view name) {
        auto const& value = object.at(name).as_string();
        return {value.data(), value.size()};
    }
    static std::string detail(HttpResponse const& response) {
        return text(json(response), "detail");
    }

    std::string new_session() { return text(json(post("create_session", "{}")), "session_id"); }
    HttpResponse retrieve(std::string const& id, Headers headers = {}) {
        return call("POST", "retrieve_future", R"({"request_id":")" + id + R"("})",
                    std::move(headers));
    }
    boost::json::object result(std::string const& id) { return json(retrieve(id)); }
    std::string new_model(std::string const& session, int seq = 0) {
        auto const made =
            post("create_model",
                 R"({"session_id":")" + session + R"(","model_seq_id":)" + std::to_string(seq) +
                     R"(,"base_model":"test/bytes","lora_config":{"rank":2,"seed":1}})");
        return text(result(text(json(made), "request_id")), "model_id");
    }
    std::string new_sampler(std::string const& session, int seq = 0) {
        auto const made = post("create_sampling_session",
                               R"({"session_id":")" + session + R"(","sampling_session_seq_id":)" +
                                   std::to_string(seq) + R"(,"base_model":"test/bytes"})");
        return text(json(made), "sampling_session_id");
    }
    static std::string sample_body(std::string const& sampler, int seq,
                                   std::string const& params = R"({"max_tokens":2,"seed":5})") {
        return R"({"sampling_session_id":")" + sampler + R"(","seq_id":)" + std::to_string(seq) +
               R"(,"prompt":{"chunks":[{"tokens":[97,98]}]},"sampling_params":)" + params + "}";
    }
    static std::string pass_body(std::string const& model, int seq, int token = 97) {
        return R"({"forward_backward_input":{"data":[{"model_input":{"chunks":[{"tokens":[)" +
               std::to_string(token) +
               R"(,98]}]},"loss_fn_inputs":{"target_tokens":{"data":[98,99],"dtype":"int64"},)" +
               R"("weights":{"data":[1,1],"dtype":"float32"}}}],"loss_fn":"cross_entropy"},)" +
               R"("model_id":")" + model + R"(","seq_id":)" + std::to_string(seq) + "}";
    }
    static std::string step_body(std::string const& model, int seq, double rate = 0.1) {
        return R"({"adam_params":{"learning_rate":)" + std::to_string(rate) + R"(},"model_id":")" +
               model + R"(","seq_id":)" + std::to_string(seq) + "}";
    }
    static std::string save_body(std::string const& model, int seq, std::string const& name,
                                 std::string const& more = {}) {
        return R"({"model_id":")" + model + R"(","seq_id":)" + std::to_string(seq) +
               R"(,"path":")" + name + "\"" + more + "}";
    }
    void restart_server() {
        http_.reset();
        restart();
    }

private:
    std::optional<HttpClient> http_{};
};

}  // namespace tinkxx::local
