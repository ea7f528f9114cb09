#pragma once

#include <tinkxx/service_client.hpp>
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/faulty_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "simulation/common/breaker_judge.hpp"
#include "simulation/common/sampling_recorder.hpp"
#include "simulation/common/service_world.hpp"
#include "simulation/sampling/sampling_model.hpp"
#include "simulation/training/training_judge.hpp"
#include "simulation/training/training_model.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::simulation::training_world {

using What = TrainCall::What;

struct Script;

struct UserCall : TrainCall {
    std::string mark{};
    TrainJudge* judge{nullptr};
    std::chrono::milliseconds deadline{0};
    BreakerJudge* breaker{nullptr};
    bool throws{false};
    /// Its last submit was refused as protobuf, by a service that takes JSON.
    bool wrong_encoding{false};
    support::TestTimer give_up{};
    Future<void> watched{};
    Script* script{nullptr};
};

struct Model {
    TrainingClient client{};
    TrainJudge* judge{nullptr};
    bool unloaded{false};
};

/// One who makes calls, some at once, and waits for what comes of them.
struct Script {
    std::size_t client{0};
    int steps{0};
    std::set<int> waits_for{};
    support::TestTimer next{};
};

/// What the world knows of a service.
struct Endpoint {
    std::unique_ptr<TrainingService> service{};
    std::shared_ptr<testing::FaultyTransport> network{};
    std::map<std::string, std::unique_ptr<TrainJudge>> judges{};
    /// Saved, and known to be.
    std::vector<std::string> checkpoints{};
    bool json_sent{false};
    bool known_old{false};
};

struct Polls {
    bool open{false};
    bool sized{false};  ///< the last answer told the size, so the next may follow at once
    std::optional<TimePoint> last{};
};

class World;

/// A service client, and what it says over the wire.
class Client final : public WorldClient {
public:
    Client(World& world, std::size_t index) : WorldClient{index}, world_{world} {}

    World& world_;
    Endpoint* endpoint{nullptr};
    ClientOptions options{};
    std::deque<Model> models{};

    void let_go() { models.clear(); }
    [[nodiscard]] TrainingNature const& nature() const { return endpoint->service->nature(); }
    [[nodiscard]] std::int64_t chunk_items() const {
        return options.chunks.items.value_or(nature().chunk_items.value_or(1024));
    }
    [[nodiscard]] std::int64_t chunk_bytes() const {
        return options.chunks.bytes.value_or(nature().chunk_bytes.value_or(5'000'000));
    }
    [[nodiscard]] std::int64_t byte_budget() const {
        return options.chunks.bytes_in_flight.value_or(
            nature().bytes_in_flight.value_or(50'000'000));
    }
    [[nodiscard]] std::int64_t download_budget() const {
        return nature().download_bytes.value_or(50 << 20);
    }

private:
    void on_request(RecordedExchange const& exchange) override;
    void on_answer(RecordedExchange const& exchange) override;
    void on_withdrawn(RecordedExchange const& exchange) override;
    void submits(RecordedExchange const& exchange, ReadRequest const& read);
    /// Whether the circuit breaker of a call lets a request through.
    BreakerJudge::Period ask_breaker(UserCall const& call, std::string const& name);
    static void tell_breaker(UserCall const* call, BreakerJudge::Period sent, int status);
    void submit_over(RecordedExchange const& exchange, std::optional<int> status);
    void polls(RecordedExchange const& exchange);

    /// A submit that is not answered.
    struct Open {
        TrainJudge* judge{nullptr};
        UserCall* call{nullptr};
        std::int64_t seq_id{0};
        bool pass{false};
        bool protobuf{false};
        std::int64_t bytes{0};
        BreakerJudge::Period sent_in{0};
    };
    std::map<RecordedExchange const*, Open> open_{};
    std::set<std::string> results_{};
    std::map<std::string, Polls> polls_{};
    std::multiset<std::int64_t> open_bytes_{};
};

/// Within fifteen minutes all that is outstanding ends once the faults have: a submit is repeated
/// for five, and calls of one model come one after the other.
class World final : public ServiceWorld<Client, UserCall> {
public:
    explicit World(std::uint64_t seed) : ServiceWorld{seed, std::chrono::minutes{15}} {}
    ~World() override { end_runtime(); }
    World(World const&) = delete;
    World& operator=(World const&) = delete;

    using SeededWorld::at;
    [[nodiscard]] UserCall* call_of(RecordedExchange const& exchange);
    TrainJudge& judge_of(Endpoint& endpoint, std::string const& model);

private:
    // The world ----------------------------------------------------------------------------------

    testing::FaultOptions faults_for(TrainingNature const& nature) {
        auto faults = draw_faults();
        // What the network sends twice such a service does twice: no client could help it.
        if (!nature.knows_repeats) faults.duplicate = 0;
        return faults;
    }

    Endpoint& make_endpoint(std::string const& url, std::uint64_t seed);
    void make() override;
    void make_clients();
    void make_scripts();
    void make_weather();
    void calm_networks() override;

    // What users do ------------------------------------------------------------------------------

    void step(Script& script);
    Model& pick(Client& client) {
        for (;;) {
            auto& model = client.models[random_.next() % client.models.size()];
            if (!model.unloaded) return model;
        }
    }

    UserCall& new_call(Client const& client, Script& script, What what);
    UserCall& create(Client& client, Script& script);
    UserCall& make_call(Client& client, Model& model, Script& script);
    void expect_refusal(UserCall const& call);
    void make_pass(Client& client, TrainingClient const& trainer, UserCall& call);
    Datum draw_datum(int call, Token place, bool policy, SentDatum& sent);

    /// A loss function of the user's own: numbers that come from those it is given.
    CustomLossValue loss_of(UserCall& call, std::size_t data, std::span<TensorData const> logprobs);

    void make_other(Client& client, Model& model, TrainingClient const& trainer, UserCall& call);
    static Future<LoadResult> load(TrainingClient const& trainer, UserCall const& call);
    Future<SampleResponse> draw(SamplingClient const& sampler, UserCall const& call) {
        mark_ = call.mark;
        return sampler.sample(ModelInput::from_tokens({call.id, 7}),
                              SamplingParams{.max_tokens = 2});
    }

    void watch_sample(UserCall& call, Future<SampleResponse> sample) {
        call.watched = std::move(sample).then_result([this, &call](Result<SampleResponse> result) {
            if (result) call.drawn = result->sequences.at(0).tokens;
            end(call, result ? std::nullopt : std::optional{result.error()});
        });
    }

    // How calls end ------------------------------------------------------------------------------

    UserCall& call(int id) { return calls_[static_cast<std::size_t>(id)]; }

    void end(UserCall& call, std::optional<Error> const& error);
    bool explained(UserCall const& call, Error const& error);
    /// A call came to nothing: the one behind it goes on within a second.
    void expect_next(UserCall const& over);

    // What clients say about themselves ----------------------------------------------------------

    void check_status(Client& client, ServiceStatus const& status) override;
    void check_rest(Client& client) override;
    void judge() override;
    void judge(Endpoint& endpoint);

    std::map<std::string, Endpoint> endpoints_{};
    std::map<std::string, UserCall*, std::less<>> marks_{};
    std::string mark_{};
    std::deque<Script> scripts_{};
};

}  // namespace tinkxx::simulation::training_world
