#pragma once

#include <tinkxx/service_client.hpp>
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/faulty_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "simulation/breaker_judge.hpp"
#include "simulation/sampling_model.hpp"
#include "simulation/sampling_recorder.hpp"
#include "simulation/seeded_world.hpp"
#include "simulation/training_judge.hpp"
#include "simulation/training_model.hpp"

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

inline constexpr std::string_view key_mark = "tml-secret-";

inline bool tells_a_secret(std::string_view text) {
    return text.find(key_mark) != std::string_view::npos;
}

struct Script;

struct UserCall : TrainCall {
    std::string mark{};
    TrainJudge* judge{nullptr};
    std::chrono::milliseconds deadline{0};
    BreakerJudge* breaker{nullptr};
    bool throws{false};
    /// Its last submit was refused as protobuf, by a service that takes JSON.
    bool wrong_encoding{false};
    Alarm give_up{};
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
    Alarm next{};
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
class Client final : private Traffic {
public:
    Client(World& world, std::size_t index) : world_{world}, index_{index} {}

    World& world_;
    std::size_t const index_;
    Endpoint* endpoint{nullptr};
    ClientOptions options{};
    std::shared_ptr<Recorder> recorder{};
    std::optional<ServiceClient> client{};
    std::deque<Model> models{};
    bool closed{false};     ///< `close` was called
    bool closing{false};    ///< and has begun: nothing more but what is drained
    bool finishing{false};  ///< it begins when the finish is answered
    std::optional<TimePoint> last_request{};

    void connect(Scheduler& scheduler) {
        Traffic& traffic = *this;
        recorder = std::make_shared<Recorder>(scheduler, endpoint->network, traffic);
    }
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
    void on_request(Exchange const& exchange) override;
    void on_answer(Exchange const& exchange) override;
    void on_withdrawn(Exchange const& exchange) override;
    void submits(Exchange const& exchange, ReadRequest const& read);
    /// Whether the circuit breaker of a call lets a request through.
    BreakerJudge::Period ask_breaker(UserCall const& call, std::string const& name);
    static void tell_breaker(UserCall const* call, BreakerJudge::Period sent, int status);
    void submit_over(Exchange const& exchange, std::optional<int> status);
    void polls(Exchange const& exchange);

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
    std::map<Exchange const*, Open> open_{};
    std::set<std::string> promises_{};
    std::map<std::string, Polls> polls_{};
    std::multiset<std::int64_t> open_bytes_{};
};

class World final : public SeededWorld {
public:
    explicit World(std::uint64_t seed) : SeededWorld{seed} {
        fake_->otherwise([this](testing::SentRequest const& sent) { return serve(sent); });
    }
    /// What still hangs, if a promise was broken, ends before those who watch it: their options
    /// keep the runtime.
    ~World() override { runtime_->shutdown(); }
    World(World const&) = delete;
    World& operator=(World const&) = delete;

    Outcome run();
    using SeededWorld::at;
    [[nodiscard]] UserCall* call_of(Exchange const& exchange);
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
    void make_clients();
    void make_scripts();
    void make_weather();
    /// All faults end.
    void calm_down();

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

    void look(Client& client);
    void check_status(Client const& client, ServiceStatus const& status);
    void close(Client& client);
    void drop(Client& client);
    void shut_down();

    /// Everything is over: all must be given back, and a close must leave nothing.
    void wind_up();
    void check_rest(Client& client);
    void report_hanging();
    void judge(Endpoint& endpoint);
    std::optional<testing::Reply> serve(testing::SentRequest const& sent) {
        auto const slash = sent.url.find('/', 7);
        auto const found = endpoints_.find(sent.url.substr(0, slash));
        if (found == endpoints_.end()) return testing::Reply{.status = 404};
        return found->second.service->serve(sent);
    }

    std::shared_ptr<testing::FakeTransport> fake_{
        std::make_shared<testing::FakeTransport>(*clock_)};
    std::map<std::string, Endpoint> endpoints_{};
    std::deque<UserCall> calls_{};
    std::map<std::string, UserCall*, std::less<>> marks_{};
    std::string mark_{};
    std::deque<Script> scripts_{};
    std::deque<Client> clients_{};
    // Ends before what its clients use.
    std::optional<Runtime> runtime_{make_runtime()};
    std::vector<std::unique_ptr<BreakerJudge>> breakers_{};
    /// For so long users are disturbed by what they and others do.
    nanoseconds storm_{0};
    /// When nobody reaches the services any more, if that happens.
    std::optional<nanoseconds> outage_{};
    /// When all faults end.
    nanoseconds calm_{0};
    int open_{0};
    bool shut_down_{false};
    bool ended_{false};
    /// All calls are over; what users had still planned would only disturb.
    bool judging_{false};
};

}  // namespace tinkxx::simulation::training_world
