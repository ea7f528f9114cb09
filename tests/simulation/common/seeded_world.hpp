#pragma once

#include <tinkxx/observer.hpp>
#include <tinkxx/runtime.hpp>
#include <tinkxx/service_client.hpp>
#include <tinkxx/testing/faulty_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "service/common/random.hpp"
#include "simulation/common/outcome.hpp"
#include "support/test_timer.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace tinkxx::simulation {

using std::chrono::nanoseconds;

/// The faults of networks from calm to stormy; `most` are those of the worst.
inline testing::FaultOptions draw_faults(service::Random& random, testing::FaultOptions most) {
    auto const storm = random.unit();
    most.drop_before = most.drop_before * storm * random.unit();
    most.status = most.status * storm * random.unit();
    most.drop_after = most.drop_after * storm * random.unit();
    most.duplicate *= random.unit();
    most.reset_body = most.reset_body * storm * random.unit();
    most.trickle *= random.unit();
    most.delay *= random.unit();
    return most;
}

/// What all simulated worlds have: time and chance by a seed, and an account of what happened.
class SeededWorld : public Observer {
public:
    void on_stage(StageEvent const& event) override {
        count("stage: " + std::string{to_string(event.stage)});
    }
    [[nodiscard]] bool wants_stages() const noexcept override { return true; }

    [[nodiscard]] TimePoint now() const { return clock_->now(); }
    void note(std::string const& what) {
        outcome_.trace +=
            std::to_string(now().time_since_epoch().count() / 1000) + ' ' + what + '\n';
    }
    void problem(std::string what) {
        note("PROBLEM " + what);
        outcome_.problems.push_back(std::move(what));
    }
    void count(std::string const& what) { ++outcome_.occurred[what]; }

protected:
    explicit SeededWorld(std::uint64_t seed)
        : seed_{seed}, random_{seed}, clock_{make_clock(seed)} {}

    static std::shared_ptr<testing::ManualClock> make_clock(std::uint64_t seed) {
        return std::make_shared<testing::ManualClock>(
            testing::ManualClockOptions{.seed = seed, .auto_advance = true});
    }

    /// A runtime without threads, on the clock.
    [[nodiscard]] Runtime make_runtime() const {
        return Runtime{RuntimeOptions{.threads = 0, .scheduler = clock_, .log = silent_log()}};
    }
    /// This one, which outlives its clients, as an observer of them.
    [[nodiscard]] std::shared_ptr<Observer> as_observer() {
        return {this, [](Observer*) {}};
    }

    bool chance(double probability) { return random_.unit() < probability; }
    std::int64_t below(std::uint64_t bound) {
        return static_cast<std::int64_t>(random_.next() % bound);
    }
    nanoseconds span(nanoseconds most) {
        return nanoseconds{below(static_cast<std::uint64_t>(most.count()))};
    }
    /// Faults of a network on which users work for minutes.
    testing::FaultOptions draw_faults() {
        return simulation::draw_faults(random_, {.seed = seed_,
                                                 .drop_before = 0.1,
                                                 .status = 0.1,
                                                 .drop_after = 0.1,
                                                 .duplicate = 0.2,
                                                 .reset_body = 0.1,
                                                 .trickle = 0.2,
                                                 .delay = 0.3});
    }

    void arm(Timer& timer, nanoseconds after) {
        clock_->arm(timer, now() + after, Precision::exact);
    }
    void at(nanoseconds after, std::function<void()> action) {
        auto& alarm = alarms_.emplace_back();
        alarm.action = std::move(action);
        arm(alarm, after);
    }

    /// One or two scripts for each client, of `least` steps and fewer than `more` beyond them;
    /// `step(script)` does each of them.
    template <class Clients, class Scripts, class Step>
    void make_scripts(Clients const& clients, Scripts& scripts, int least, std::uint64_t more,
                      Step step) {
        for (auto const& client : clients) {
            auto const count = 1 + below(2);
            for (std::int64_t i = 0; i < count; ++i) {
                auto& script = scripts.emplace_back();
                script.client = client.index_;
                script.steps = least + static_cast<int>(below(more));
                script.next.action = [step, &script] { step(script); };
                arm(script.next, span(std::chrono::seconds{2}));
            }
        }
    }

    /// At the end all that a limit lends must be back.
    void check_back(LimitStatus const& limit, std::int64_t all, std::string const& name) {
        if (limit.free != all || limit.waiting != 0) {
            problem(name + ": " + std::to_string(limit.free.value_or(-1)) + " came back of " +
                    std::to_string(all) + ", and " + std::to_string(limit.waiting) + " wait");
        }
    }
    void check_nothing_pending(ServiceStatus const& status) {
        if (!status.pending.empty()) problem("pending: " + to_string(status.pending.front()));
    }
    void note_pending(ServiceClient const& client) {
        for (auto const& each : client.status().get().pending) note(to_string(each));
    }

    void count_faults(testing::FaultCounts const& c) {
        for (auto const& [name, times] : {std::pair{"drop_before", c.drop_before},
                                          {"status", c.status},
                                          {"drop_after", c.drop_after},
                                          {"duplicate", c.duplicate},
                                          {"reset_body", c.reset_body},
                                          {"trickle", c.trickle},
                                          {"delay", c.delay}}) {
            outcome_.occurred[std::string{"fault: "} + name] += times;
            outcome_.faults += times;
        }
    }

    std::uint64_t const seed_;
    service::Random random_;
    WorldOutcome outcome_{};
    std::shared_ptr<testing::ManualClock> clock_;

private:
    std::deque<support::TestTimer> alarms_{};
};

}  // namespace tinkxx::simulation
