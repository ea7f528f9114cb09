#include "service/training/training_run.hpp"

#include "service/calls/request_call.hpp"
#include "service/http/http_order.hpp"

#include <utility>

namespace tinkxx::service {

Future<wire::TrainingRun> get_training_run(Runtime const& runtime,
                                           std::shared_ptr<ClientCore> sessionless,
                                           std::string const& run_id, Repeat repeat) {
    static constexpr std::string_view operation = "get_training_run";
    if (run_id.empty() || run_id.find_first_of("/?#") != std::string::npos) {
        return make_failed_future<wire::TrainingRun>(Error{
            {.kind = ErrorKind::validation,
             .message = std::string{operation} + ": run_id is \"" + run_id +
                        "\"; it must be the id of a run, such as TrainingClient::model_id() gives",
             .category = ErrorCategory::user,
             .field = "run_id",
             .value = run_id}});
    }
    Promise<wire::TrainingRun> promise{runtime};
    auto future = promise.get_future();
    std::make_shared<RequestCall<wire::TrainingRun>>(
        std::move(sessionless), nullptr, std::string{operation},
        [path = "/api/v1/training_runs/" + run_id](ClientCore& ready) {
            auto const& config = ready.http().config();
            auto order = get_order(ready.http(), path, Purpose::train);
            order.url = config.endpoint.url(path, config.query, {{"access_scope", "owned"}});
            add_method(order, ready.session().config().sdk_version, operation);
            return order;
        },
        repeat,
        [](HttpResponse const& response) { return wire::decode_training_run(response.body); },
        std::move(promise))
        ->launch();
    return future;
}

}  // namespace tinkxx::service
