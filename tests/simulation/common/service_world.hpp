#pragma once

#include <tinkxx/service_client.hpp>
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/faulty_transport.hpp>

#include "simulation/common/breaker_judge.hpp"
#include "simulation/common/moody_service.hpp"
#include "simulation/common/sampling_recorder.hpp"
#include "simulation/common/seeded_world.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::simulation {

/// How the secrets of a simulation begin: keys, and what they are exchanged for.
inline constexpr std::string_view key_mark = "tml-secret-";
inline constexpr std::string_view token_mark = "tokenhead.";

inline bool tells_a_secret(std::string_view text) {
    return text.find(key_mark) != std::string_view::npos ||
           text.find(token_mark) != std::string_view::npos;
}

/// A service client of a world, and what goes between it and the network.
class WorldClient : protected Traffic {
public:
    explicit WorldClient(std::size_t index) : index_{index} {}
    WorldClient(WorldClient const&) = delete;
    WorldClient& operator=(WorldClient const&) = delete;

    void connect(Scheduler const& scheduler, std::shared_ptr<Transport> network) {
        Traffic& traffic = *this;
        recorder = std::make_shared<Recorder>(scheduler, std::move(network), traffic);
    }

    std::size_t const index_;
    std::shared_ptr<Recorder> recorder{};
    std::optional<ServiceClient> client{};
    bool closed{false};     ///< `close` was called
    bool closing{false};    ///< and has begun: nothing more but what is drained
    bool finishing{false};  ///< it begins when the finish is answered
    std::optional<TimePoint> last_request{};

protected:
    ~WorldClient() = default;
};

/// A world where clients meet moody services: a storm, then perhaps an outage, then a calm in which
/// all that is outstanding has to end.
///
/// `Client` is a `WorldClient` with `let_go()`, by which its user drops it and all that was made by
/// it. `UserCall` has `id`, `begun`, `over`, `ends` and `watched`.
template <class Client, class UserCall>
class ServiceWorld : public SeededWorld {
public:
    WorldOutcome run() {
        using namespace std::chrono_literals;
        calm_ = storm_ = chance(0.1) ? 15min : 10s + span(170s);
        if (chance(0.1)) {
            outage_ = span(storm_);
            calm_ = std::max<nanoseconds>(storm_, *outage_ + shortest_outage + span(6min));
        }
        breakers_ = draw_breakers(*clock_, random_, [this](std::string what) { problem(what); });
        make();
        run_until_over();
        if (!ended_) wind_up();
        for (auto const& call : calls_) {
            if (call.ends != (call.begun ? 1 : 0)) {
                problem("call " + std::to_string(call.id) + " ended " + std::to_string(call.ends) +
                        " times");
            }
        }
        judge();
        for (auto const& [url, service] : services_by_url_) {
            for (auto& complaint : service->take_complaints()) problem(std::move(complaint));
        }
        return std::move(outcome_);
    }

protected:
    /// Longer than any layer repeats a request.
    static constexpr nanoseconds shortest_outage = std::chrono::minutes{6};

    /// `settling`: within this time all that is outstanding ends once the faults have.
    ServiceWorld(std::uint64_t seed, std::chrono::minutes settling)
        : SeededWorld{seed}, settling_{settling} {
        fake_->otherwise([this](testing::SentRequest const& sent) { return serve(sent); });
    }
    ~ServiceWorld() override = default;

    /// To be called by the destructor of who derives: what still hangs, if a promise was broken,
    /// ends before those who watch it.
    void end_runtime() { runtime_->shutdown(); }

    /// Clients, calls and weather.
    virtual void make() = 0;
    /// Networks do well from now on.
    virtual void calm_networks() = 0;
    virtual void check_status(Client& client, ServiceStatus const& status) = 0;
    virtual void look_further(Client& /*client*/) {}
    /// Whether a client that nothing is asked of has all back.
    virtual void check_rest(Client& client) = 0;
    /// Whether all went as it should; once it is over.
    virtual void judge() = 0;

    void serve_at(std::string const& url, MoodyService& service) {
        services_by_url_[url] = &service;
    }

    /// What all clients of such a world have in common.
    ClientOptions client_options(std::string url, std::string key, Client const& client) {
        ClientOptions options;
        options.base_url = std::move(url);
        options.api_key = std::move(key);
        options.transport = client.recorder;
        options.runtime = *runtime_;
        options.observers = {as_observer()};
        options.log = [this](LogLevel, std::string_view line) {
            if (tells_a_secret(line)) problem("a log line tells a secret: " + std::string{line});
        };
        return options;
    }

    // The weather --------------------------------------------------------------------------------

    void plan_outage_and_calm() {
        if (outage_) {
            at(*outage_, [this] {
                note("outage");
                for (auto const& [url, service] : services_by_url_) service->go_out();
            });
        }
        at(calm_, [this] { calm_down(); });
    }

    /// How often the world looks at a client, and how likely it is closed or dropped.
    struct Disturbance {
        int looks{0};
        double closes{0};
        double drops{0};
    };
    void plan_disturbances(Disturbance const& likely) {
        using namespace std::chrono_literals;
        for (auto& client : clients_) {
            for (int i = 0; i < likely.looks; ++i) {
                at(span(storm_ + 20s), [this, &client] { look(client); });
            }
            if (chance(likely.closes)) {
                at(span(storm_), [this, &client] {
                    if (!judging_) close(client);
                });
            }
            if (chance(likely.drops)) {
                at(span(storm_), [this, &client] {
                    if (!judging_) drop(client);
                });
            }
        }
        if (chance(0.05)) at(span(storm_), [this] { shut_down_ = true; });
    }

    // What clients say about themselves ----------------------------------------------------------

    /// What holds of each that is pending. `timed`: stages that a timer ends.
    std::string check_pending(OperationStatus const& each, std::span<Stage const> timed) {
        using namespace std::chrono_literals;
        count("status: " + std::string{to_string(each.stage)});
        auto text = to_string(each);
        if (to_string(each.stage) == "unknown") problem("a stage that has no name: " + text);
        if (each.in_stage < 0s || each.age < each.in_stage) problem("odd times: " + text);
        if (each.ends_in && *each.ends_in < 0s) problem("a wait that is over: " + text);
        bool const waits = std::ranges::find(timed, each.stage) != timed.end();
        if (waits && !each.ends_in) problem("a wait without an end: " + text);
        if (waits && each.why.empty()) problem("a wait without a reason: " + text);
        if (tells_a_secret(text)) problem("a status tells a secret: " + text);
        return text;
    }

    void check_secrets(Error const& error) {
        if (tells_a_secret(error.what()) || tells_a_secret(error.body())) {
            problem("an error tells a secret");
        }
        for (auto const* lines : {&error.details().headers, &error.details().request_headers}) {
            for (auto const& [line, value] : *lines) {
                if (tells_a_secret(value)) problem("an error tells a secret in " + line);
            }
        }
    }

    std::shared_ptr<testing::FakeTransport> fake_{
        std::make_shared<testing::FakeTransport>(*clock_)};
    std::vector<std::unique_ptr<BreakerJudge>> breakers_{};
    std::deque<UserCall> calls_{};
    std::deque<Client> clients_{};
    // Ends before what its clients use.
    std::optional<Runtime> runtime_{make_runtime()};
    /// For so long users are disturbed by what they and others do.
    nanoseconds storm_{0};
    int open_{0};
    bool ended_{false};

private:
    void run_until_over() {
        auto const start = now();
        while (open_ > 0 && !ended_) {
            runtime_->poll(std::chrono::hours{1});
            if (std::exchange(shut_down_, false)) shut_down();
            if (now() - start > calm_ + settling_) {
                report_hanging();
                break;
            }
        }
    }

    /// All faults end.
    void calm_down() {
        note("calm");
        calm_networks();
        for (auto const& [url, service] : services_by_url_) service->calm();
    }

    /// Asks a client what it is doing, and looks whether the answer can be true.
    void look(Client& client) {
        if (!client.client || ended_ || judging_) return;
        count("looked");
        ++open_;
        (void)client.client->status().then_result(
            [this, &client](Result<ServiceStatus> const& status) {
                --open_;
                if (!status) return problem("no status: " + std::string{status.error().what()});
                check_status(client, *status);
            });
        look_further(client);
    }

    void close(Client& client) {
        if (!client.client || client.closed || ended_) return;
        note("close " + std::to_string(client.index_));
        count("closed");
        client.closed = true;
        client.finishing = chance(0.4);
        // Just before the close begins, which is put into the same queue.
        clock_->post([&client] { client.closing = !client.finishing; });
        (void)(client.finishing ? client.client->close(CloseReason::success)
                                : client.client->close());
    }

    void drop(Client& client) {
        if (ended_) return;
        note("drop " + std::to_string(client.index_));
        count("dropped");
        client.let_go();
        client.client.reset();
    }

    void shut_down() {
        note("shutdown");
        count("shut down");
        ended_ = true;
        runtime_->shutdown();
        for (auto& call : calls_) {
            if (!call.begun || call.ends > 0) continue;
            auto const ended = call.watched.wait_for(std::chrono::milliseconds{0});
            if (!ended) problem("call " + std::to_string(call.id) + " survived the shutdown");
            if (ended && call.ends == 0) {
                ++call.ends;  // its continuation was dropped with the loop
                ++outcome_.cancelled;
                call.over = now();
            }
        }
        for (auto& client : clients_) {
            if (client.recorder->open() > 0) problem("a request survived the shutdown");
        }
    }

    /// Everything is over: all must be given back, and a close must leave nothing.
    void wind_up() {
        using namespace std::chrono_literals;
        judging_ = true;
        if (outage_) calm_down();  // to close takes longer while nobody is reached
        for (auto& client : clients_) {
            if (client.client && !client.closed && outcome_.problems.empty()) check_rest(client);
        }
        for (auto& client : clients_) {
            if (client.client) close(client);
            client.let_go();
            client.client.reset();
        }
        auto const start = now();
        while (now() - start < 8min && runtime_->poll(1min)) {
        }
        for (auto& client : clients_) {
            if (client.recorder->open() > 0) problem("requests were left open");
            if (client.last_request && *client.last_request > start + 6min) {
                problem("a client that is gone still makes requests");
            }
        }
    }

    void report_hanging() {
        problem(std::to_string(open_) + " calls were still open " +
                std::to_string(settling_.count()) + " minutes after the last fault");
        for (auto& client : clients_) {
            if (client.client) note_pending(*client.client);
        }
    }

    std::optional<testing::Reply> serve(testing::SentRequest const& sent) {
        auto const slash = sent.url.find('/', 7);
        auto const found = services_by_url_.find(sent.url.substr(0, slash));
        if (found == services_by_url_.end()) return testing::Reply{.status = 404};
        return found->second->serve(sent);
    }

    std::chrono::minutes const settling_;
    std::map<std::string, MoodyService*> services_by_url_{};
    /// When nobody reaches the services any more, if that happens.
    std::optional<nanoseconds> outage_{};
    /// When all faults end.
    nanoseconds calm_{0};
    bool shut_down_{false};
    /// All calls are over; what users had still planned would only disturb.
    bool judging_{false};
};

}  // namespace tinkxx::simulation
