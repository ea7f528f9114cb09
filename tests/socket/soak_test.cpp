// Thousands of requests in flight while the server is killed and comes back.
#include "socket/modes.hpp"
#include "support/sockets/processes.hpp"

#include <atomic>
#include <random>
#include <thread>
#include <unordered_map>

namespace tinkxx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t in_flight = 2000;
constexpr std::size_t total = 4000;

/// Keeps `in_flight` requests going until `total` have been started, and checks each end.
class Soak {
public:
    Soak(HttpDriver& driver, std::string url) : driver_{driver}, url_{std::move(url)} {}

    /// Called on the loop, once each, when that many have ended.
    void at(std::size_t ended, std::function<void()> what) { events_[ended] = std::move(what); }

    void run() {
        driver_.on_loop([this] {
            for (std::size_t i = 0; i < in_flight; ++i) start_one();
        });
        ASSERT_TRUE(finished_.wait_until_open()) << ended_ << " of " << total << " ended";
        driver_.on_loop([] {});
        EXPECT_EQ(ended_, total);
        EXPECT_EQ(succeeded_ + failed_, total);
    }
    [[nodiscard]] std::size_t succeeded() const { return succeeded_; }
    [[nodiscard]] std::size_t failed() const { return failed_; }
    [[nodiscard]] std::string const& last_failure() const { return last_failure_; }

private:
    struct One final : ReplySink {
        explicit One(Soak& whose) : soak{whose} {}
        void on_head(Head head) override {
            EXPECT_EQ(head.status, 200);
            status = head.status;
        }
        void on_data(std::span<char const> data) override {
            auto const& sent = *request.body.tail;
            ASSERT_LE(received + data.size(), sent.size());
            EXPECT_EQ(std::string_view(data.data(), data.size()),
                      std::string_view(sent).substr(received, data.size()));
            received += data.size();
        }
        void on_done(Timing const&) override {
            EXPECT_EQ(received, request.body.tail->size());
            ++soak.succeeded_;
            end();
        }
        void on_failure(Failure failure) override {
            ++soak.failed_;
            soak.last_failure_ = std::string{to_string(failure.seen)} + ", " + failure.message;
            EXPECT_FALSE(after_restart) << failure.message;
            // A kill can come in the middle of anything, a TLS handshake included.
            EXPECT_TRUE(failure.kind == FailureKind::reset ||
                        failure.kind == FailureKind::connect || failure.kind == FailureKind::tls)
                << to_string(failure.kind) << ": " << failure.message;
            end();
        }
        void end() {
            EXPECT_EQ(++endings, 1) << "a request ended twice";
            soak.one_ended();
        }
        Soak& soak;
        Request request{};
        std::size_t received{0};
        int status{0};
        int endings{0};
        bool after_restart{false};
    };

    void start_one() {
        if (started_ == total) return;
        ++started_;
        auto& one = *all_.emplace_back(std::make_unique<One>(*this));
        auto const size = 1024 + random_() % (39 * 1024);
        one.request = with_id(post_request(url_, pattern(size, static_cast<unsigned>(started_))));
        one.request.purpose = Purpose::sample;
        one.after_restart = restarted_;
        driver_.transport().start(one.request, one);
    }

    void one_ended() {
        ++ended_;
        if (auto const event = events_.find(ended_); event != events_.end()) event->second();
        // While the server is down, requests would end as fast as they start.
        if (holding_) {
            ++held_;
        } else {
            start_one();
        }
        if (ended_ == total) finished_.open();
    }

public:
    /// Loop thread: starts no successors until `go_on`.
    void hold() { holding_ = true; }
    void go_on() {
        restarted_ = true;
        holding_ = false;
        for (auto n = std::exchange(held_, 0); n > 0; --n) start_one();
    }

private:
    HttpDriver& driver_;
    std::string url_;
    std::mt19937 random_{4711};
    std::unordered_map<std::size_t, std::function<void()>> events_;
    std::vector<std::unique_ptr<One>> all_;
    std::size_t started_{0};
    std::size_t ended_{0};
    std::size_t succeeded_{0};
    std::size_t failed_{0};
    std::string last_failure_;
    std::size_t held_{0};
    bool holding_{false};
    bool restarted_{false};
    Gate finished_;
};

NetOptions soak_options(Mode mode) {
    auto options = net_options(mode);
    options.max_http1_connections = static_cast<int>(in_flight);
    options.max_connections = static_cast<int>(in_flight);
    return options;
}

/// Starts the server again and lets the soak go on, which must then succeed.
template <class Start>
void come_back(HttpDriver& driver, Soak& soak, Start start) {
    start();
    driver.on_loop([] {});  // one whole turn, which notices every connection that ended
    driver.on_loop([&] { soak.go_on(); });
}

/// Kills the server early on, while the loop waits, and starts it again from another thread.
void run_with_a_kill(HttpDriver& driver, Soak& soak, ForeignServer& server) {
    Gate killed;
    std::thread starter{[&] {
        if (!killed.wait_until_open()) return;
        come_back(driver, soak, [&] { server.start(); });
    }};
    soak.at(in_flight / 20, [&] {
        server.kill();
        soak.hold();
        killed.open();
    });
    soak.run();
    starter.join();
    EXPECT_GE(soak.succeeded(), total - in_flight - in_flight / 20) << soak.last_failure();
}

class SoakModes : public testing::TestWithParam<Mode> {};
INSTANTIATE_TEST_SUITE_P(, SoakModes,
                         testing::Values(Mode{HttpVersion::http1, false},
                                         Mode{HttpVersion::http2, true}),
                         mode_name);

TEST_P(SoakModes, OurServerKilledAndRestartedSeesNoRequestTwice) {
    // It answers nothing before it is killed, so that all it has seen are lost with it.
    std::atomic<bool> holds{true};
    HttpServer server{[&](ReceivedRequest const& request) {
                          auto reaction = echo(request);
                          reaction.hold = holds;
                          return reaction;
                      },
                      server_options(GetParam())};
    HttpDriver driver{soak_options(GetParam())};
    Soak soak{driver, server.url()};
    std::thread killer{[&] {
        EXPECT_TRUE(server.wait_for([](auto const& seen) { return seen.requests >= 1500; }));
        driver.on_loop([&] { soak.hold(); });
        server.kill();
        holds = false;
        come_back(driver, soak, [&] { server.restart(); });
    }};
    soak.run();
    killer.join();
    EXPECT_GE(soak.failed(), 1500U);
    EXPECT_GE(soak.succeeded(), total - in_flight) << soak.last_failure();
    EXPECT_EQ(server.counts().repeated_ids, 0);
}

TEST_P(SoakModes, OurServerThatStaysAnswersAll) {
    HttpServer server{echo, server_options(GetParam())};
    HttpDriver driver{soak_options(GetParam())};
    Soak soak{driver, server.url()};
    soak.run();
    EXPECT_EQ(soak.succeeded(), total) << soak.last_failure();
    EXPECT_EQ(server.counts().repeated_ids, 0);
    EXPECT_EQ(server.counts().requests, static_cast<int>(total));
}

TEST_P(SoakModes, AServerThatKeepsSayingGoodbyeStillAnswersAll) {
    if (!GetParam().http2()) GTEST_SKIP() << "HTTP/1.1 has no goodbye that is safe under load";
    HttpServer server{echo, server_options(GetParam())};
    HttpDriver driver{soak_options(GetParam())};
    Soak soak{driver, server.url()};
    std::vector<std::thread> speakers;
    // Rarely enough that no request meets more of them than it may be repeated.
    for (std::size_t const at : {1200U, 2600U}) {
        soak.at(at, [&] { speakers.emplace_back([&] { server.say_goodbye(); }); });
    }
    soak.run();
    for (auto& speaker : speakers) speaker.join();
    EXPECT_EQ(soak.succeeded(), total) << soak.last_failure();
    EXPECT_EQ(server.counts().repeated_ids, 0);
}

void expect_no_repeats(ForeignServer const& server) {
    auto ids = server.seen_ids();
    EXPECT_GT(ids.size(), (total - in_flight) / 2);
    std::sort(ids.begin(), ids.end());
    auto const repeated = std::adjacent_find(ids.begin(), ids.end());
    EXPECT_EQ(repeated, ids.end()) << *repeated << " was seen twice";
}

TEST_P(SoakModes, NginxKilledAndRestartedSeesNoRequestTwice) {
    if (auto const why = nginx_missing(); !why.empty()) GTEST_SKIP() << why;
    auto const nginx =
        make_nginx({.certificate = GetParam().tls ? loopback_certificate() : CertificateFiles{}});
    nginx->start();
    HttpDriver driver{soak_options(GetParam())};
    Soak soak{driver, nginx->url() + "/echo"};
    run_with_a_kill(driver, soak, *nginx);
    expect_no_repeats(*nginx);
}

TEST_P(SoakModes, NghttpdKilledAndRestartedSeesNoRequestTwice) {
    if (auto const why = nghttpd_missing(); !why.empty()) GTEST_SKIP() << why;
    if (!GetParam().http2()) GTEST_SKIP() << "nghttpd speaks HTTP/2 only";
    auto const nghttpd = make_nghttpd({.certificate = loopback_certificate()});
    nghttpd->start();
    HttpDriver driver{soak_options(GetParam())};
    Soak soak{driver, nghttpd->url() + "/echo"};
    run_with_a_kill(driver, soak, *nghttpd);
    expect_no_repeats(*nghttpd);
}

}  // namespace
}  // namespace tinkxx::test
