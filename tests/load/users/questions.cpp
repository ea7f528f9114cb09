#include "load/users/questions.hpp"

#include <tinkxx/local/service_client.hpp>
#include <tinkxx/local/tiny_model.hpp>

#include <utility>

namespace tinkxx::load {

ModelInput text_input(std::string const& text) {
    std::vector<Token> tokens;
    for (auto const byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    return ModelInput::from_tokens(std::move(tokens));
}

local::Server quiet_server() {
    return local::Server{{.models = {local::tiny_model()}, .survive_power_loss = false}};
}

std::vector<Question> make_questions(std::uint64_t seed) {
    constexpr int count = 64;
    auto const server = quiet_server();
    auto const service = local::service_client(server, ClientOptions{});
    auto const sampler = service.create_sampling_client(model_name);
    std::vector<Question> questions;
    std::vector<Future<SampleResponse>> answers;
    for (int i = 0; i < count; ++i) {
        Question question{
            .prompt = text_input("Q: What is " + std::to_string(seed % 10) + " + " +
                                 std::to_string(i) + std::string(static_cast<std::size_t>(i), '?')),
            .params = {.max_tokens = tokens_of_a_sample,
                       .seed = seed + static_cast<std::uint64_t>(i),
                       .stop = Stop::nowhere()}};
        answers.push_back(sampler.sample(question.prompt, question.params));
        questions.push_back(std::move(question));
    }
    for (int i = 0; i < count; ++i) {
        auto const at = static_cast<std::size_t>(i);
        questions[at].answer = answers[at].get().sequences.at(0);
    }
    service.close().get();
    server.stop();
    return questions;
}

}  // namespace tinkxx::load
