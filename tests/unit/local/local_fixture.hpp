#pragma once

#include <tinkxx/local/server.hpp>
#include <tinkxx/local/service_client.hpp>
#include <tinkxx/testing/manual_clock.hpp>
#include <tinkxx/tokenizer.hpp>

#include "engine/model/model.hpp"
#include "support/temporary_folder.hpp"
#include "support/tiny_models.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::local {

using support::TemporaryFolder;

/// A byte-level model as small as can be, with token 0 as its end of sequence.
inline engine::ModelConfig byte_config() {
    return {.architecture = engine::Architecture::llama,
            .vocab_size = 256,
            .hidden_size = 16,
            .intermediate_size = 24,
            .layers = 2,
            .heads = 2,
            .kv_heads = 1,
            .head_dim = 8,
            .max_positions = 128,
            .eos_tokens = {0}};
}

/// Its folder, written once for all tests of a program.
inline std::filesystem::path const& byte_model() {
    static TemporaryFolder const folder;
    static auto const path = [] {
        auto place = folder.path() / "bytes";
        auto const config = byte_config();
        auto const weights =
            engine::support::weights_of(config, engine::support::random_tensors(config, 7));
        engine::save_model(place, config, weights, engine::ElementType::f32).value();
        return place;
    }();
    return path;
}

inline ServerOptions tiny_server() {
    ServerOptions options;
    options.models = {{.name = "test/bytes", .folder = byte_model(), .byte_level = true}};
    options.cache_bytes = std::size_t{8} << 20U;
    options.compute = Compute::loop;
    options.survive_power_loss = false;
    return options;
}

/// A server and its client on a clock that jumps over waits; nothing has a thread.
class LocalTest : public ::testing::Test {
protected:
    LocalTest() { server_options.home = home.path() / "home"; }

    Server& server() {
        if (!server_) server_.emplace(server_options, runtime);
        return *server_;
    }
    ServiceClient& service() {
        if (!service_) service_.emplace(service_client(server(), client_options));
        return *service_;
    }
    /// As if the process had been killed and started again: nobody is told anything.
    void restart() {
        service_.reset();
        server_.reset();
        run();
    }
    void run() {
        while (clock->run_ready()) {
        }
    }

    TemporaryFolder home{};
    std::shared_ptr<testing::ManualClock> clock{
        std::make_shared<testing::ManualClock>(testing::ManualClockOptions{.auto_advance = true})};
    Runtime runtime{
        RuntimeOptions{.threads = 0, .scheduler = clock, .log = [](LogLevel, std::string_view) {}}};
    ServerOptions server_options{tiny_server()};
    ClientOptions client_options{};

private:
    std::optional<Server> server_{};
    std::optional<ServiceClient> service_{};
};

inline ModelInput text_prompt(std::string const& text) {
    return ModelInput::from_text(text, ByteTokenizer{});
}

/// Tokens and the ones that follow them.
inline Datum text_datum(std::string const& text) {
    auto const tokens = ByteTokenizer{}.encode(text);
    Datum datum;
    datum.model_input = ModelInput::from_tokens({tokens.begin(), tokens.end() - 1});
    datum.loss_fn_inputs.set("target_tokens",
                             std::vector<std::int64_t>{tokens.begin() + 1, tokens.end()});
    datum.loss_fn_inputs.set("weights", std::vector<float>(tokens.size() - 1, 1.0F));
    return datum;
}

}  // namespace tinkxx::local
