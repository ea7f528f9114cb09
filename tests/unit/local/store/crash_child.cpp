// A server that trains, saves and samples until it is killed, and says what was acknowledged.
//
//   crash_child HOME MODEL ROUND
#include <tinkxx/http_client.hpp>
#include <tinkxx/local/service_client.hpp>

#include <iostream>
#include <string>

int main(int argc, char** argv) try {
    if (argc != 4) return 2;
    tinkxx::local::ServerOptions options;
    options.models = {{.name = "test/bytes", .folder = argv[2], .byte_level = true}};
    options.home = argv[1];
    options.threads = 1;
    options.cache_bytes = std::size_t{8} << 20U;
    std::string const round{argv[3]};
    tinkxx::local::Server const server{options};
    auto const service = tinkxx::local::service_client(server, {});
    tinkxx::HttpClient const http{{.base_url = tinkxx::local::Server::base_url(),
                                   .api_key = "tml-test",
                                   .transport = server.transport(),
                                   .runtime = server.runtime()}};
    auto const trainer = service.create_lora_training_client("test/bytes", 2).get();
    auto const sampler = service.create_sampling_client("test/bytes").sampling_session_id().get();
    tinkxx::Datum datum;
    datum.model_input = tinkxx::ModelInput::from_tokens({97, 98, 99});
    datum.loss_fn_inputs.set("target_tokens", std::vector<std::int64_t>{98, 99, 100});
    datum.loss_fn_inputs.set("weights", {1.0, 1.0, 1.0});
    for (int i = 0;; ++i) {
        auto pass = trainer.forward_backward({datum}, tinkxx::LossFn::cross_entropy);
        auto step = trainer.optim_step({.learning_rate = 0.01});
        tinkxx::HttpRequest request{.method = "POST", .path = "/api/v1/asample"};
        request.body = R"({"sampling_session_id":")" + sampler + R"(","seq_id":)" +
                       std::to_string(i) +
                       R"(,"prompt":{"chunks":[{"tokens":[97]}]},"sampling_params":)" +
                       R"({"max_tokens":20,"stop":[]}})";
        if (http.send(request).get().status == 200) {
            std::cout << "promised " << sampler << ':' << i << std::endl;
        }
        // The same name again and again, and names of their own.
        tinkxx::SaveOptions again;
        again.overwrite = true;
        auto const last = trainer.save_state("last-" + round, again).get();
        std::cout << "saved " << last.path << std::endl;
        auto const own = trainer.save_weights_for_sampler(round + "-" + std::to_string(i)).get();
        std::cout << "saved " << own.path << std::endl;
        pass.get();
        step.get();
    }
} catch (tinkxx::Error const& error) {
    std::cout << "failed " << error.what() << std::endl;
    return 1;
}
