#include "promise_stand_in.hpp"

#include "service/futures/future_poll.hpp"
#include "service/session/service_call.hpp"
#include "wire/json.hpp"
#include "wire/sample.hpp"
#include "wire/service_messages.hpp"

#include <gtest/gtest.h>

#include <map>

namespace tinkxx::golden {
namespace {

using namespace std::chrono_literals;

struct Traits {
    std::string path{};
    std::string_view type{};
    int http_retries{10};
    service::Repeat repeat{service::Repeat::submit_loop};
    bool protobuf{false};
};

std::map<std::string, Traits> const& known_operations() {
    static std::map<std::string, Traits> const known{
        {"optim_step", {.path = "/api/v1/optim_step", .type = "OptimStep"}},
        {"forward_backward",
         {.path = "/api/v1/forward_backward", .type = "ForwardBackward", .protobuf = true}},
        {"save_state", {.path = "/api/v1/save_weights", .type = "SaveWeights", .http_retries = 0}},
        {"create_model",
         {.path = "/api/v1/create_model", .type = "CreateModel", .repeat = service::Repeat::once}},
    };
    return known;
}

class StandIn final : private service::ServiceCall::Listener,
                      private service::FuturePoll::Listener {
public:
    StandIn(StubService& stub, Traits traits, value const& recording)
        : stub_{&stub}, traits_{std::move(traits)}, context_{http(stub)} {
        if (auto const* given = find(recording, "client_config")) {
            auto const flags = wire::decode_client_flags(boost::json::serialize(*given)).value();
            context_.billing().set_limit(flags.billing_exception_max_pause_duration_sec);
        }
    }
    ~StandIn() { context_.close(); }

    StandInOutcome run() {
        service::HttpOrder order;
        order.operation = {.method = "POST", .path = traits_.path};
        order.url = "http://host" + traits_.path;
        order.common_headers = context_.http().json_headers();
        order.body.tail = std::make_shared<std::string const>("{}");
        order.max_retries = traits_.http_retries;
        call_.start(std::move(order), traits_.repeat);
        for (int i = 0; !outcome_ && i < 100; ++i) stub_->clock->advance(10min);
        EXPECT_TRUE(outcome_) << "it never ended";
        return {.result = outcome_.value_or(Error{{.message = "it never ended"}}),
                .queue_reports = reports_};
    }

private:
    static std::shared_ptr<service::HttpContext> http(StubService& stub) {
        service::HttpConfig config{.endpoint = service::Endpoint::parse("http://host").value()};
        config.log = silent_log();
        return std::make_shared<service::HttpContext>(
            std::move(config), stub.runtime.core(), stub.transport,
            std::make_shared<service::FixedCredential>("tml-golden"));
    }

    void on_response(HttpResponse response) override {
        auto const submitted = wire::decode_submitted(response.body);
        if (!submitted) return on_error(submitted.error());
        service::FutureOrder order;
        order.request_id = submitted->request_id;
        order.request_type = traits_.type;
        order.protobuf_wanted = traits_.protobuf;
        poll_.start(std::move(order));
    }
    void on_error(Error error) override { outcome_.emplace(std::move(error)); }
    void on_result(service::FutureResult result) override {
        if (result.protobuf && !traits_.protobuf) {
            outcome_.emplace(ErrorDetails{.kind = ErrorKind::validation,
                                          .message = "protobuf in place of JSON"});
            return;
        }
        outcome_.emplace(wire::parse_json("stand-in", result.view()));
    }
    void on_queue_state(QueueState state, std::string const& reason) override {
        reports_.push_back(
            {std::string{to_string(state)}, reason.empty() ? value(nullptr) : value(reason)});
    }

    StubService* stub_;
    Traits traits_;
    service::ServiceContext context_;
    service::ByteBudget downloads_{50'000'000};
    service::FutureSurroundings around_{context_, downloads_};
    service::ServiceCall call_{context_, *this};
    service::FuturePoll poll_{around_, *this};
    std::optional<Result<value>> outcome_{};
    boost::json::array reports_{};
};

}  // namespace

bool stands_in_for(std::string const& operation) { return known_operations().contains(operation); }

std::string submit_path(std::string const& operation) {
    auto const found = known_operations().find(operation);
    return found == known_operations().end() ? "/api/v1/asample" : found->second.path;
}

StandInOutcome run_stand_in(StubService& stub, value const& recording) {
    StandIn stand_in{stub, known_operations().at(text(recording, "operation")), recording};
    return stand_in.run();
}

}  // namespace tinkxx::golden
