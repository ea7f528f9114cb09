#include "simulation/http/http_simulation.hpp"

#include <tinkxx/http_client.hpp>
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/faulty_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "simulation/common/seeded_world.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::simulation {

namespace {

using namespace std::chrono_literals;

struct UserCall {
    int id{0};
    std::size_t client{0};
    int max_retries{0};
    support::TestTimer begin{};
    support::TestTimer give_up{};
    Future<HttpResponse> pending{};
    Future<void> watched{};
    bool cancelled{false};
    int ends{0};
};

class World final : public SeededWorld {
public:
    explicit World(std::uint64_t seed) : SeededWorld{seed} {
        fake_->otherwise([this](testing::SentRequest const& sent) { return serve(sent); });
        auto const faults = simulation::draw_faults(random_, {.seed = seed,
                                                              .drop_before = 0.3,
                                                              .status = 0.4,
                                                              .drop_after = 0.3,
                                                              .duplicate = 0.3,
                                                              .reset_body = 0.2,
                                                              .trickle = 0.3,
                                                              .delay = 0.5});
        faulty_ = std::make_shared<testing::FaultyTransport>(*clock_, fake_, faults);
    }

    WorldOutcome run() {
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
        count_faults(faulty_->counts());
        return std::move(outcome_);
    }

    void on_http_retry(HttpRetryEvent const& event) override {
        note("retry " + event.metadata.at("call") + " in " + std::to_string(event.delay.count()));
        if (event.delay <= 0s || event.delay > 60s) problem("a wait out of bounds");
    }

private:
    void make_clients() {
        auto const count = 1 + random_.next() % 3;
        for (std::size_t i = 0; i < count; ++i) {
            ClientOptions options;
            options.base_url = "http://server-" + std::to_string(i);
            options.api_key = "tml-client-" + std::to_string(i);
            options.transport = faulty_;
            options.runtime = runtime_;
            options.observers = {as_observer()};
            options.log = silent_log();
            clients_.emplace_back(std::in_place, std::move(options));
        }
        if (chance(0.2)) {
            close_.action = [this] {
                note("close 0");
                clients_.front()->close();
                closed_ = true;
            };
            arm(close_, span(60s));
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
            arm(call.begin, span(30s));
            if (chance(0.15)) {
                call.give_up.action = [this, &call] {
                    if (call.ends > 0 || !call.watched.valid()) return;
                    note("cancel " + std::to_string(call.id));
                    call.cancelled = true;
                    call.watched.cancel();
                };
                arm(call.give_up, span(90s));
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
        reply.delay = span(500ms);
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
            if (mood > 0.95) reply.delay = span(20s);
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

    std::shared_ptr<testing::FakeTransport> fake_{
        std::make_shared<testing::FakeTransport>(*clock_)};
    std::shared_ptr<testing::FaultyTransport> faulty_{};
    Runtime runtime_{make_runtime()};
    std::vector<std::optional<HttpClient>> clients_{};
    std::deque<UserCall> calls_{};
    support::TestTimer close_{};
    bool closed_{false};
    int open_{0};
    std::map<std::string, int> seen_{};
    std::uint64_t repeats_{0};
    std::map<int, std::string> keys_{};
    std::set<std::string> all_keys_{};
};

}  // namespace

WorldOutcome run_http_world(std::uint64_t seed) { return World{seed}.run(); }

}  // namespace tinkxx::simulation
