// Bodies at every endpoint of a server that runs: each request is answered, and none with 5xx.
#include <tinkxx/local/server.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "local/core/core.hpp"
#include "local/core/routes.hpp"
#include "support/tiny_models.hpp"

#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

namespace {

using namespace tinkxx;
using namespace tinkxx::local;

struct Heard {
    int status{0};
    std::string body{};
    bool done{false};
};

class Listening final : public Answer {
public:
    explicit Listening(std::shared_ptr<Heard> heard) : heard_{std::move(heard)} {}
    void head(int status, Headers /*headers*/, std::optional<std::size_t> /*length*/) override {
        if (heard_->status != 0) std::abort();
        heard_->status = status;
    }
    void data(std::string bytes) override {
        if (heard_->status == 0 || heard_->done) std::abort();
        heard_->body += bytes;
    }
    void done() override {
        if (heard_->status == 0 || std::exchange(heard_->done, true)) std::abort();
    }
    [[nodiscard]] std::size_t pending() const noexcept override { return 0; }
    void on_gone(Task /*task*/) override {}
    void on_drained(Task /*task*/) override {}

private:
    std::shared_ptr<Heard> heard_;
};

/// A server with a session, a model and a sampler that inputs can name.
struct World {
    World() {
        std::string pattern = (std::filesystem::temp_directory_path() / "tinkxx-fuzz-XXXXXX");
        place = ::mkdtemp(pattern.data());
        auto const config = engine::support::tiny_configs().front().second;
        auto const weights =
            engine::support::weights_of(config, engine::support::random_tensors(config, 7));
        engine::save_model(place / "tiny", config, weights, engine::ElementType::f32).value();
        ServerOptions options;
        options.models = {{.name = "t", .folder = place / "tiny", .byte_level = true}};
        options.home = place / "home";
        options.compute = Compute::loop;
        options.survive_power_loss = false;
        options.cache_bytes = 1 << 20;
        options.limits.adapter_bytes = 16 << 20;
        options.fetched_keep = std::chrono::seconds{1};
        options.unfetched_keep = std::chrono::seconds{1};
        core = Core::create(options, clock).value();
        core->start();
        session = member(ask("POST", "/api/v1/create_session", "{}").body, "session_id");
        auto const head = R"({"session_id":")" + session + R"(",)";
        (void)ask("POST", "/api/v1/create_model",
                  head + R"("model_seq_id":0,"base_model":"t","lora_config":{"rank":1}})");
        (void)ask("POST", "/api/v1/create_sampling_session",
                  head + R"("sampling_session_seq_id":0,"base_model":"t"})");
    }
    ~World() {
        core.reset();
        std::error_code ignored;
        std::filesystem::remove_all(place, ignored);
    }
    World(World const&) = delete;
    World& operator=(World const&) = delete;

    static std::string member(std::string const& body, std::string const& name) {
        auto const at = body.find("\"" + name + "\":\"") + name.size() + 4;
        return body.substr(at, body.find('"', at) - at);
    }
    Heard ask(std::string method, std::string path, std::string body, bool protobuf = false) {
        auto heard = std::make_shared<Heard>();
        ServerRequest request{.method = std::move(method), .target = std::move(path)};
        if (protobuf) request.headers.add("Content-Type", "application/x-protobuf");
        request.body = std::move(body);
        core->handle(std::move(request), std::make_shared<Listening>(heard));
        clock.run_ready();
        // Longer than any request for a result is held.
        if (!heard->done) clock.advance(std::chrono::seconds{50});
        if (!heard->done) std::abort();
        return *heard;
    }

    std::filesystem::path place{};
    testing::ManualClock clock{};
    std::unique_ptr<Core> core{};
    std::string session{};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    if (size < 2) return 0;
    static auto world = std::make_unique<World>();
    static int inputs = 0;
    // Sessions expire meanwhile, and what was made piles up.
    if (++inputs % 500 == 0) world = std::make_unique<World>();
    auto const& route = routes()[data[0] % routes().size()];
    std::string body{reinterpret_cast<char const*>(data) + 2, size - 2};
    // `$S` in an input is the session that there is.
    for (auto at = body.find("$S"); at != std::string::npos;
         at = body.find("$S", at + world->session.size())) {
        body.replace(at, 2, world->session);
    }
    std::string path{route.path};
    for (auto const& [name, value] : {std::pair{std::string{"{run}"}, world->session + ":train:0"},
                                      {"{session}", world->session},
                                      {"{sampler}", world->session + ":sample:0"},
                                      {"{ckpt}", "weights/w"},
                                      {"{file}", "f"}}) {
        if (auto const at = path.find(name); at != std::string::npos) {
            path.replace(at, name.size(), value);
        }
    }
    auto const heard =
        world->ask(std::string{route.method}, path, std::move(body), data[1] % 2 == 1);
    if (heard.status >= 500) std::abort();
    return 0;
}
