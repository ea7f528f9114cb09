#include "simulation/http_simulation.hpp"

#include <tinkxx/http_client.hpp>
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/faulty_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "service/random.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace tinkxx::simulation {

namespace {

using namespace std::chrono_literals;
using service::Random;

struct Alarm final : Timer {
    void on_time() override { action(); }
    std::function<void()> action{};
};

struct UserCall {
    int id{0};
    std::size_t client{0};
    int max_retries{0};
    Alarm begin{};
    Alarm give_up{};
    Future<HttpResponse> pending{};
    Future<void> watched{};
    bool cancelled{false};
    int ends{0};
};

class World final : public Observer {
public:
    explicit World(std::uint64_t seed) : random_{seed}, clock_{make_clock(seed)} {
        fake_->otherwise([this](testing::SentRequest const& sent) { return serve(sent); });
        faulty_ = std::make_shared<testing::FaultyTransport>(*clock_, fake_, draw_faults(seed));
    }

    Outcome run() {
        make_clients();
        make_calls();
        auto const start = clock_->now();
        while (open_ > 0) {
            runtime_.poll(1h);
            if (clock_->now() - start > 48h) {
                problem("calls were still open after two days");
                break;
            }
        }
        calls_done();
        clock_->disarm(close_);
        clients_.clear();
        for (int i = 0; i < 100 && runtime_.poll(1min); ++i) {
        }
        check_the_rest();
        count_faults();
        return std::move(outcome_);
    }

    void on_http_retry(HttpRetryEvent const& event) override {
        note("retry " + event.metadata.at("call") + " in " + std::to_string(event.delay.count()));
        if (event.delay <= 0s || event.delay > 60s) problem("a wait out of bounds");
    }

private:
    static std::shared_ptr<testing::ManualClock> make_clock(std::uint64_t seed) {
        return std::make_shared<testing::ManualClock>(
            testing::ManualClockOptions{.seed = seed, .auto_advance = true});
    }

    testing::FaultOptions draw_faults(std::uint64_t seed) {
        // From calm to stormy.
        auto const storm = random_.unit();
        return {.seed = seed,
                .drop_before = 0.3 * storm * random_.unit(),
                .status = 0.4 * storm * random_.unit(),
                .drop_after = 0.3 * storm * random_.unit(),
                .duplicate = 0.3 * random_.unit(),
                .reset_body = 0.2 * storm * random_.unit(),
                .trickle = 0.3 * random_.unit(),
                .delay = 0.5 * random_.unit()};
    }

    void make_clients() {
        auto const count = 1 + random_.next() % 3;
        for (std::size_t i = 0; i < count; ++i) {
            ClientOptions options;
            options.base_url = "http://server-" + std::to_string(i);
            options.api_key = "tml-client-" + std::to_string(i);
            options.transport = faulty_;
            options.runtime = runtime_;
            options.observers = {std::shared_ptr<Observer>{this, [](Observer*) {}}};
            options.log = silent_log();
            clients_.emplace_back(std::in_place, std::move(options));
        }
        if (random_.unit() < 0.2) {
            close_.action = [this] {
                note("close 0");
                clients_.front()->close();
                closed_ = true;
            };
            arm(close_, random_span(60s));
        }
    }

    void make_calls() {
        auto const count = 10 + random_.next() % 30;
        for (std::size_t i = 0; i < count; ++i) {
            auto& call = calls_.emplace_back();
            call.id = static_cast<int>(i);
            call.client = random_.next() % clients_.size();
            call.max_retries = static_cast<int>(random_.next() % 11);
            call.begin.action = [this, &call] { begin(call); };
            arm(call.begin, random_span(30s));
            if (random_.unit() < 0.15) {
                call.give_up.action = [this, &call] {
                    if (call.ends > 0 || !call.watched.valid()) return;
                    note("cancel " + std::to_string(call.id));
                    call.cancelled = true;
                    call.watched.cancel();
                };
                arm(call.give_up, random_span(90s));
            }
        }
        open_ = static_cast<int>(calls_.size());
        outcome_.calls = open_;
    }

    void begin(UserCall& call) {
        HttpRequest request;
        request.method = call.id % 4 == 0 ? "GET" : "POST";
        request.path = "/call/" + std::to_string(call.id);
        request.body = request.method == "GET" ? "" : "body " + std::to_string(call.id);
        request.purpose = call.id % 2 == 0 ? Purpose::rest : Purpose::train;
        request.max_retries = call.max_retries;
        request.timeouts = Timeouts{.read = 10s, .total = 40s};
        request.metadata = {{"call", std::to_string(call.id)}};
        call.watched = clients_[call.client]
                           ->send(std::move(request))
                           .then_result([this, &call](Result<HttpResponse> const& result) {
                               end(call, result);
                           });
    }

    void end(UserCall& call, Result<HttpResponse> const& result) {
        if (++call.ends > 1) return problem("call " + std::to_string(call.id) + " ended twice");
        --open_;
        if (result) {
            note("done " + std::to_string(call.id) + " after " + std::to_string(result->retries));
            ++outcome_.succeeded;
            if (result->body != answer_to(call.id)) problem("an answer went to the wrong call");
            if (result->retries > call.max_retries) problem("more retries than allowed");
            return;
        }
        auto const& error = result.error();
        note("failed " + std::to_string(call.id) + " " + error.what());
        if (error.kind() == ErrorKind::cancelled || error.kind() == ErrorKind::closed) {
            ++outcome_.cancelled;
            bool const meant = call.cancelled || (closed_ && call.client == 0);
            if (!meant) problem("a call was cancelled by nobody");
            return;
        }
        ++outcome_.failed;
        bool const spent = error.stopped() == RetryEnd::attempts_spent &&
                           error.details().attempts == call.max_retries + 1;
        // What a proxy rejects is for the submit loop to repeat (R-RETRY-75).
        bool const rejected = std::string_view{error.what()}.find(
                                  "400 bad request without a body") != std::string_view::npos;
        if (!spent && !rejected && error.stopped() != RetryEnd::permanent) {
            problem("a call gave up early: " + std::string{error.what()});
        }
        if (std::string{error.what()}.find("tml-client-") != std::string::npos) {
            problem("an error tells the key");
        }
    }

    static std::string answer_to(int call) { return "answer " + std::to_string(call); }

    // What the server does depends on the request and its number alone.
    std::optional<testing::Reply> serve(testing::SentRequest const& sent) {
        auto const attempt = sent.header("x-stainless-retry-count");
        auto const key = sent.url + ' ' + attempt;
        auto const times = ++seen_[key];
        note("seen " + key);
        if (times == 2) ++repeats_;
        if (times > 2) problem("the server saw one attempt three times: " + key);
        auto const call = std::stoi(sent.path.substr(sent.path.rfind('/') + 1));
        if (std::stoi(attempt) > calls_[static_cast<std::size_t>(call)].max_retries) {
            problem("an attempt too many: " + key);
        }
        check_identity(sent, call);

        auto const mood = random_.unit();
        testing::Reply reply;
        reply.delay = random_span(500ms);
        if (mood < 0.05) return std::nullopt;  // never answers
        if (mood < 0.15) {
            reply.status = mood < 0.10 ? 503 : 429;
            reply.body = "busy, " + sent.header("x-api-key");
            if (mood < 0.08) reply.headers.add("retry-after", std::to_string(random_.next() % 90));
        } else if (mood < 0.17) {
            reply.status = 400;  // no body: a proxy's mood
        } else if (mood < 0.18) {
            reply.status = 422;
            reply.body = R"({"detail":"no"})";
        } else {
            reply.body = answer_to(call);
            reply.pieces = 1 + random_.next() % 3;
            if (mood > 0.95) reply.delay = random_span(20s);
        }
        return reply;
    }

    void check_identity(testing::SentRequest const& sent, int call) {
        auto const key = sent.header("x-idempotency-key");
        if ((sent.method == "GET") != key.empty()) return problem("an idempotency key astray");
        if (key.empty()) return;
        auto const [place, fresh] = keys_.emplace(call, key);
        if (place->second != key) problem("the idempotency key of a call changed");
        if (fresh && !all_keys_.insert(key).second) problem("two calls share an idempotency key");
    }

    void calls_done() {
        for (auto const& call : calls_) {
            if (call.ends != 1) {
                problem("call " + std::to_string(call.id) + " ended " + std::to_string(call.ends) +
                        " times");
            }
        }
    }

    void check_the_rest() {
        if (repeats_ > faulty_->counts().duplicate) problem("the server saw unexplained repeats");
        auto const open = fake_->open_count();
        if (open > faulty_->counts().duplicate) problem("calls were left open at the server");
    }

    void count_faults() {
        auto const& c = faulty_->counts();
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

    std::chrono::nanoseconds random_span(std::chrono::nanoseconds most) {
        return std::chrono::nanoseconds{
            static_cast<std::int64_t>(random_.next() % static_cast<std::uint64_t>(most.count()))};
    }
    void arm(Timer& timer, std::chrono::nanoseconds after) {
        clock_->arm(timer, clock_->now() + after, Precision::exact);
    }
    void note(std::string const& what) {
        outcome_.trace +=
            std::to_string(clock_->now().time_since_epoch().count()) + ' ' + what + '\n';
    }
    void problem(std::string what) {
        note("PROBLEM " + what);
        outcome_.problems.push_back(std::move(what));
    }

    Random random_;
    Outcome outcome_{};
    std::shared_ptr<testing::ManualClock> clock_;
    std::shared_ptr<testing::FakeTransport> fake_{
        std::make_shared<testing::FakeTransport>(*clock_)};
    std::shared_ptr<testing::FaultyTransport> faulty_{};
    Runtime runtime_{RuntimeOptions{.threads = 0, .scheduler = clock_, .log = silent_log()}};
    std::vector<std::optional<HttpClient>> clients_{};
    std::deque<UserCall> calls_{};
    Alarm close_{};
    bool closed_{false};
    int open_{0};
    std::map<std::string, int> seen_{};
    std::uint64_t repeats_{0};
    std::map<int, std::string> keys_{};
    std::set<std::string> all_keys_{};
};

}  // namespace

Outcome run_http_world(std::uint64_t seed) { return World{seed}.run(); }

}  // namespace tinkxx::simulation
