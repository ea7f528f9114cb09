#pragma once

#include <tinkxx/service_client.hpp>
#include <tinkxx/testing/faulty_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "simulation/common/outcome.hpp"
#include "simulation/common/sampling_recorder.hpp"
#include "simulation/common/seeded_world.hpp"
#include "simulation/local/local_host.hpp"
#include "simulation/local/local_hostile.hpp"
#include "simulation/local/local_judge.hpp"
#include "simulation/training/training_model.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::simulation::local_world {

enum class What : std::uint8_t {
    create,
    forward,
    forward_backward,
    custom,
    step,
    save,
    save_sampler,
    ephemeral,
    load,
    info,
    unload,
    sample,
    copy,
};

struct Script;

struct UserCall {
    int id{0};
    std::string mark{};
    std::size_t client{0};
    What what{};
    std::string model{};
    TimePoint begun{};
    /// Of the server, when it was made.
    int life{0};
    std::chrono::milliseconds deadline{0};
    bool cancelled{false};
    int ends{0};
    bool succeeded{false};
    support::TestTimer give_up{};
    Future<void> watched{};
    Script* script{nullptr};

    std::optional<ForwardBackwardOutput> output{};
    std::optional<OptimStepResult> step{};
    std::optional<SampleResponse> sample{};
    bool seeded{false};
};

struct Model {
    TrainingClient client{};
    std::string id{};
    bool unloaded{false};
};

/// One who makes calls, some at once, and waits for what comes of them.
struct Script {
    std::size_t client{0};
    int steps{0};
    std::set<int> waits_for{};
    support::TestTimer next{};
};

class World;

/// A service client, and what it sees of the network.
class Client final : private Traffic {
public:
    Client(World& world, std::size_t index) : world_{world}, index_{index} {}

    World& world_;
    std::size_t const index_;
    ClientOptions options{};
    std::shared_ptr<testing::FaultyTransport> network{};
    std::shared_ptr<Recorder> recorder{};
    std::optional<ServiceClient> client{};
    std::deque<Model> models{};
    std::deque<SamplingClient> samplers{};
    bool closed{false};

    void connect(Scheduler& scheduler) {
        Traffic& traffic = *this;
        recorder = std::make_shared<Recorder>(scheduler, network, traffic);
        options.transport = recorder;
    }

private:
    void on_request(RecordedExchange const& exchange) override;
    void on_answer(RecordedExchange const& exchange) override;
    void on_withdrawn(RecordedExchange const& exchange) override;
};

/// One seed of what `local_simulation.hpp` tells of.
class World final : public SeededWorld, private ServerWatch {
public:
    World(std::uint64_t seed, bool hostile)
        : SeededWorld{seed},
          hostile_{hostile},
          judge_{*clock_, server_options().fetched_keep,
                 [this](std::string what) { problem(std::move(what)); }, outcome_.occurred},
          host_{std::make_shared<LocalHost>(seed, *clock_, server_options(),
                                            static_cast<ServerWatch&>(*this), outcome_.occurred,
                                            [this](std::string const& what) { note(what); })},
          visitors_{seed,
                    *clock_,
                    *host_,
                    outcome_.occurred,
                    [this](std::string const& what) { note(what); },
                    [this](std::string what) { problem(std::move(what)); }} {
        judge_.crowded = [this] { return visitors_.crowded(); };
    }

    WorldOutcome run();

private:
    local::ServerOptions server_options();

    // The world ----------------------------------------------------------------------------------

    void on_asked(Served const& served) override {
        if (!HostileClients::sent(served)) judge_.on_asked(served);
    }
    void on_served(Served const& served) override;
    void on_clean_stop(int life) override { judge_.on_clean_stop(life); }

    [[nodiscard]] bool may_die() const { return !calm_ && host_->life() <= 4; }

    void make_clients();
    void make_scripts();

    /// The server comes up, perhaps to die soon.
    void up();
    void make_weather();

    // What users do ------------------------------------------------------------------------------

    void step(Script& script);

    /// One of those that can still be trained, as far as its user knows.
    Model* pick(Client& client);
    UserCall& new_call(Client const& client, Script& script, What what, std::string model);
    UserCall& create(Client& client, Script& script);
    UserCall& make_call(Client& client, Model& model, Script& script);
    Datum draw_datum(bool policy);
    void make_pass(TrainingClient const& trainer, UserCall& call);
    void make_other(Client& client, Model& model, TrainingClient const& trainer, UserCall& call);
    Future<LoadResult> load(TrainingClient const& trainer);
    UserCall& sample(Client& client, Script& script);
    Future<SampleResponse> draw(Client& client, UserCall& call, SamplingClient sampler);
    void watch_sample(UserCall& call, Future<SampleResponse> sample);

    // How calls end ------------------------------------------------------------------------------

    void end(UserCall& call, std::optional<Error> const& error);
    bool explained(UserCall const& call, Error const& error);

    /// The user lets go of a model that the server does not have any more.
    void lose(UserCall const& call);

    [[nodiscard]] bool was_unloaded(UserCall const& call) const;

    // What clients say about themselves ----------------------------------------------------------

    void look(Client& client);
    void close(Client& client);
    void drop(Client& client);
    void report_hanging();

    /// Everything is over: all must be given back, and a close must leave nothing.
    void wind_up();
    void check_rest(Client& client);

    // Judgement ----------------------------------------------------------------------------------

    void judge();
    void check_result(UserCall const& call);

    /// Whether hostile clients come to this world.
    bool const hostile_;
    ScratchFolder folder_{};
    TimePoint start_{clock_->now()};
    LocalJudge judge_;
    std::shared_ptr<LocalHost> host_;
    HostileClients visitors_;
    std::deque<UserCall> calls_{};
    std::string mark_{};
    std::deque<Script> scripts_{};
    std::deque<Client> clients_{};
    /// Checkpoints of training that were acknowledged, and will not be overwritten.
    std::vector<std::string> saved_{};
    // Ends before what its clients use.
    std::optional<Runtime> runtime_{make_runtime()};
    nanoseconds storm_{0};
    int open_{0};
    bool calm_{false};
    /// The server is stopping, or there is none; and since when there is one.
    bool away_{false};
    TimePoint last_up_{};
    /// All calls are over; what users had still planned would only disturb.
    bool judging_{false};
};

}  // namespace tinkxx::simulation::local_world
