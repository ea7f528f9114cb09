// How long clients, calls and runtimes live: handles that go, processes that fork or end, and
// file descriptors that run out. Over real connections, and in processes of their own.
#include "support/servers/canned_tinker.hpp"

#include <tinkxx/http_client.hpp>
#include <tinkxx/service_client.hpp>

#include <gmock/gmock.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace tinkxx::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// How a child process ended, and what it wrote to standard error.
struct Ended {
    int status{0};
    std::string said{};

    [[nodiscard]] bool well() const noexcept {
        return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    [[nodiscard]] auto lines() const { return std::count(said.begin(), said.end(), '\n'); }
};

/// A child of this process that is being run. One that hangs is killed by its alarm.
class Child {
public:
    /// `fn` gives the exit code, and may leave by `exit` itself.
    explicit Child(std::function<int()> const& fn) {
        std::array<int, 2> ends{};
        if (::pipe(ends.data()) != 0) std::abort();
        id_ = ::fork();
        if (id_ == 0) {
            ::alarm(60);
            ::dup2(ends[1], STDERR_FILENO);
            ::close(ends[0]);
            ::close(ends[1]);
            ::_exit(fn());
        }
        ::close(ends[1]);
        read_ = ends[0];
    }
    Child(Child const&) = delete;
    Child& operator=(Child const&) = delete;
    ~Child() {
        if (id_ > 0) (void)end();
    }

    Ended end() {
        Ended ended;
        std::array<char, 4096> buffer{};
        for (;;) {
            auto const got = ::read(read_, buffer.data(), buffer.size());
            if (got <= 0) break;
            ended.said.append(buffer.data(), static_cast<std::size_t>(got));
        }
        ::close(read_);
        ::waitpid(id_, &ended.status, 0);
        id_ = -1;
        return ended;
    }

private:
    pid_t id_{-1};
    int read_{-1};
};

Ended in_child(std::function<int()> const& fn) { return Child{fn}.end(); }

/// True if `fn` throws `UsageError`.
template <class Fn>
bool refused(Fn fn) {
    try {
        fn();
    } catch (UsageError const&) {
        return true;
    } catch (...) {
    }
    return false;
}

ClientOptions options(HttpServer const& server) {
    ClientOptions all;
    all.base_url = server.url("");
    all.api_key = "tml-test";
    all.telemetry = false;
    return all;
}

ModelInput prompt() { return ModelInput::from_tokens(std::vector<Token>(100, 1)); }

Future<SampleResponse> draw(SamplingClient const& sampler) {
    return sampler.sample(prompt(), {.max_tokens = 16});
}

/// A service that takes everything and gives no result of a sample before `release`.
Reaction slow(CannedTinker& tinker, ReceivedRequest const& request) {
    auto reaction = tinker(request);
    reaction.hold = request.target.find("retrieve_future") != std::string::npos;
    return reaction;
}

/// Where a child finds out that it is as it should be: the first step that is not, counted.
class Steps {
public:
    void expect(bool right) {
        ++step_;
        if (!right && failed_ == 0) failed_ = step_;
    }
    [[nodiscard]] int code() const noexcept { return failed_; }

private:
    int step_{0};
    int failed_{0};
};

// --- handles that go -----------------------------------------------------------------------------

TEST(CallsUnderWay, OnTheSharedRuntimeNeedNoHandle) {  // C-58
    CannedTinker tinker{{.tokens = 16}};
    HttpServer server{[&](ReceivedRequest const& request) { return slow(tinker, request); }};
    Future<SampleResponse> pending;
    {
        ServiceClient const service{options(server)};
        pending = draw(service.create_sampling_client("org/tiny"));
        ASSERT_TRUE(
            server.wait_for([](HttpServerCounts const& seen) { return seen.requests > 4; }));
    }
    server.release();
    EXPECT_TRUE(pending.result()) << "the last handle took the call along";
}

TEST(CallsUnderWay, OnARuntimeOfTheirOwnNeedNoHandle) {
    CannedTinker tinker{{.tokens = 16}};
    HttpServer server{[&](ReceivedRequest const& request) { return slow(tinker, request); }};
    Future<SampleResponse> pending;
    {
        auto all = options(server);
        all.runtime = Runtime{};
        ServiceClient const service{std::move(all)};
        pending = draw(service.create_sampling_client("org/tiny"));
        ASSERT_TRUE(
            server.wait_for([](HttpServerCounts const& seen) { return seen.requests > 4; }));
    }
    server.release();
    EXPECT_TRUE(pending.result());
}

TEST(CallsUnderWay, OfAnHttpClientNeedNoHandle) {
    HttpServer server{[](ReceivedRequest const&) { return Reaction{.hold = true}; }};
    Future<HttpResponse> pending;
    {
        HttpClient const http{options(server)};
        pending = http.send({.path = "/"});
        ASSERT_TRUE(
            server.wait_for([](HttpServerCounts const& seen) { return seen.requests > 0; }));
    }
    server.release();
    EXPECT_TRUE(pending.result());
}

TEST(CallsUnderWay, LetTheRuntimeEndWhenTheyHave) {
    CannedTinker tinker{{.tokens = 16}};
    HttpServer const server{std::ref(tinker)};
    std::optional<Runtime> runtime{Runtime{}};
    std::weak_ptr<detail::RuntimeCore> const core = runtime->core();
    {
        auto all = options(server);
        all.runtime = *std::exchange(runtime, std::nullopt);
        ServiceClient const service{std::move(all)};
        EXPECT_TRUE(draw(service.create_sampling_client("org/tiny")).result());
    }
    ASSERT_TRUE(server.wait_for([](HttpServerCounts const& seen) {
        return seen.open_connections == 0;
    })) << "something keeps the runtime for ever";
    while (!core.expired()) std::this_thread::yield();  // for ever, should something hold it
}

// --- processes that fork -------------------------------------------------------------------------

TEST(Fork, HandlesOfTheParentAreRefusedInTheChild) {
    CannedTinker tinker{{.tokens = 16}};
    HttpServer server{[&](ReceivedRequest const& request) { return slow(tinker, request); }};
    std::optional<ServiceClient> service{options(server)};
    std::optional<SamplingClient> sampler{service->create_sampling_client("org/tiny")};
    std::optional<HttpClient> http{options(server)};
    auto pending = draw(*sampler);
    ASSERT_TRUE(server.wait_for([](HttpServerCounts const& seen) { return seen.requests > 4; }));

    auto const ended = in_child([&] {
        Steps steps;
        steps.expect(refused([&] { (void)draw(*sampler); }));
        steps.expect(refused([&] { (void)service->session_id(); }));
        steps.expect(refused([&] { (void)service->create_sampling_client("org/tiny"); }));
        steps.expect(refused([&] { (void)service->health(); }));
        steps.expect(refused([&] { (void)service->status(); }));
        steps.expect(refused([&] { (void)service->close(); }));
        steps.expect(refused([&] { (void)http->send({.path = "/"}); }));
        steps.expect(refused([&] { (void)pending.wait_for(1h); }));
        steps.expect(refused([&] { pending.get(); }));
        auto on_it = options(server);
        on_it.runtime = service->runtime();
        steps.expect(refused([&] { (void)ServiceClient{on_it}; }));
        pending.cancel();
        // All of it can be let go of.
        pending = {};
        on_it.runtime.reset();
        sampler.reset();
        service.reset();
        http.reset();
        return steps.code();
    });
    EXPECT_TRUE(ended.well()) << "step " << WEXITSTATUS(ended.status) << ", status "
                              << ended.status;
    EXPECT_EQ(ended.said, "");

    server.release();
    EXPECT_TRUE(pending.result()) << "the child disturbed its parent";
    EXPECT_TRUE(draw(*sampler).result());
}

TEST(Fork, ANewClientWorksInTheChild) {
    CannedTinker tinker{{.tokens = 16}};
    HttpServer const server{std::ref(tinker)};
    ServiceClient const service{options(server)};
    auto const sampler = service.create_sampling_client("org/tiny");
    ASSERT_TRUE(draw(sampler).result());
    auto const ended = in_child([&] {
        Steps steps;
        ServiceClient const own{options(server)};
        steps.expect(own.runtime().core() != service.runtime().core());
        steps.expect(draw(own.create_sampling_client("org/tiny")).result().has_value());
        HttpClient const http{options(server)};
        steps.expect(http.send({.path = "/api/v1/healthz"}).result().has_value());
        steps.expect(own.close().result().has_value());
        return steps.code();
    });
    EXPECT_TRUE(ended.well()) << "step " << WEXITSTATUS(ended.status) << ", status "
                              << ended.status;
    EXPECT_TRUE(draw(sampler).result());
}

TEST(Fork, TheChildCanEndAsAnyProgramDoes) {
    CannedTinker tinker{{.tokens = 16}};
    HttpServer server{[&](ReceivedRequest const& request) { return slow(tinker, request); }};
    ServiceClient const service{options(server)};
    auto pending = draw(service.create_sampling_client("org/tiny"));
    ASSERT_TRUE(server.wait_for([](HttpServerCounts const& seen) { return seen.requests > 4; }));
    auto const ended = in_child([]() -> int { std::exit(0); });
    EXPECT_TRUE(ended.well()) << ended.status;
    EXPECT_EQ(ended.said, "");
    server.release();
    EXPECT_TRUE(pending.result());
}

TEST(Fork, WorksWhileOtherThreadsAreBusy) {
    CannedTinker tinker{{.tokens = 16}};
    HttpServer const server{std::ref(tinker)};
    ServiceClient const service{options(server)};
    auto const sampler = service.create_sampling_client("org/tiny");
    std::atomic<bool> over{false};
    std::vector<std::thread> busy;
    for (int i = 0; i < 3; ++i) {
        busy.emplace_back([&] {
            while (!over) EXPECT_TRUE(draw(sampler).result());
        });
    }
    for (int round = 0; round < 10; ++round) {
        auto const ended = in_child([&] {
            Steps steps;
            steps.expect(refused([&] { (void)draw(sampler); }));
            ServiceClient const own{options(server)};
            steps.expect(draw(own.create_sampling_client("org/tiny")).result().has_value());
            return steps.code();
        });
        EXPECT_TRUE(ended.well()) << round << ": " << ended.status;
    }
    over = true;
    for (auto& each : busy) each.join();
}

// --- processes that end --------------------------------------------------------------------------

TEST(ProcessEnd, SaysInOneLineHowManyCallsItCutsShort) {
    CannedTinker tinker{{.tokens = 16}};
    HttpServer server{[&](ReceivedRequest const& request) { return slow(tinker, request); }};
    auto const ended = in_child([&]() -> int {
        {
            ServiceClient const service{options(server)};
            auto const sampler = service.create_sampling_client("org/tiny");
            std::vector<Future<SampleResponse>> pending;
            for (int i = 0; i < 400; ++i) pending.push_back(draw(sampler));
            (void)sampler.sampling_session_id().get();
        }
        std::exit(0);
    });
    EXPECT_TRUE(ended.well()) << ended.status;
    EXPECT_EQ(ended.lines(), 1) << ended.said;
    EXPECT_THAT(ended.said, HasSubstr("while 400 calls are under way"));
}

TEST(ProcessEnd, SaysNothingWhereNothingIsToBeSaid) {
    CannedTinker tinker{{.tokens = 16}};
    HttpServer server{[&](ReceivedRequest const& request) { return slow(tinker, request); }};
    auto const silent = in_child([&]() -> int {
        auto all = options(server);
        all.log_level = LogLevel::off;
        auto const pending = draw(ServiceClient{std::move(all)}.create_sampling_client("org/tiny"));
        std::exit(0);
    });
    EXPECT_TRUE(silent.well()) << silent.status;
    EXPECT_EQ(silent.said, "");
    server.release();
    auto const done = in_child([&]() -> int {
        ServiceClient const service{options(server)};
        auto const result = draw(service.create_sampling_client("org/tiny")).result();
        std::exit(result ? 0 : 1);
    });
    EXPECT_TRUE(done.well()) << done.status;
    EXPECT_EQ(done.said, "");
}

TEST(ProcessEnd, CallsNoFunctionOfMain) {
    CannedTinker tinker{{.tokens = 16}};
    HttpServer server{[&](ReceivedRequest const& request) { return slow(tinker, request); }};
    auto const ended = in_child([&]() -> int {
        ServiceClient const service{options(server)};
        auto told = draw(service.create_sampling_client("org/tiny"))
                        .then_result([](Result<SampleResponse> const&) { ::_exit(1); });
        std::exit(0);
    });
    EXPECT_TRUE(ended.well()) << ended.status;
}

// --- file descriptors ----------------------------------------------------------------------------

/// Leaves this process with so many descriptors that it can still open.
void limit_descriptors(std::size_t more) {
    constexpr rlimit limit{.rlim_cur = 256, .rlim_max = 256};
    ::setrlimit(RLIMIT_NOFILE, &limit);
    std::vector<int> taken;
    for (int fd = 0; (fd = ::dup(STDERR_FILENO)) >= 0;) taken.push_back(fd);
    for (std::size_t i = 0; i < std::min(more, taken.size()); ++i) ::close(taken[i]);
}

TEST(Descriptors, AHundredClientsShareAFewConnections) {
    CannedTinker tinker{{.tokens = 16}};
    HttpServer const server{std::ref(tinker)};
    auto const ended = in_child([&] {
        limit_descriptors(32);
        Steps steps;
        std::vector<ServiceClient> clients;
        for (int i = 0; i < 100; ++i) {
            clients.emplace_back(options(server));
            steps.expect(
                draw(clients.back().create_sampling_client("org/tiny")).result().has_value());
        }
        return std::min(steps.code(), 200);
    });
    EXPECT_TRUE(ended.well()) << "client " << WEXITSTATUS(ended.status);
    EXPECT_EQ(ended.said, "");
    EXPECT_LT(server.counts().connections, 32);
}

TEST(Descriptors, TwoHundredClientsAtOnceShareWhatThereIs) {
    CannedTinker tinker{{.tokens = 16}};
    HttpServer const server{std::ref(tinker)};
    auto const ended = in_child([&] {
        limit_descriptors(64);
        Steps steps;
        std::vector<ServiceClient> clients;
        std::vector<Future<SampleResponse>> pending;
        for (int i = 0; i < 200; ++i) {
            clients.emplace_back(options(server));
            pending.push_back(draw(clients.back().create_sampling_client("org/tiny")));
        }
        for (auto& each : pending) steps.expect(each.result().has_value());
        return std::min(steps.code(), 250);
    });
    EXPECT_TRUE(ended.well()) << "client " << WEXITSTATUS(ended.status) << ' ' << ended.status;
    EXPECT_LE(ended.lines(), 1) << ended.said;
}

TEST(Descriptors, ClosingOneClientLeavesTheCallsOfAnother) {
    CannedTinker tinker{{.tokens = 16}};
    HttpServer server{[&](ReceivedRequest const& request) { return slow(tinker, request); }};
    auto const runtime = Runtime{};
    auto all = options(server);
    all.runtime = runtime;
    std::optional<ServiceClient> one{all};
    ServiceClient const other{all};
    auto ends = draw(one->create_sampling_client("org/tiny"));
    auto goes_on = draw(other.create_sampling_client("org/tiny"));
    ASSERT_TRUE(server.wait_for([](HttpServerCounts const& seen) { return seen.requests > 9; }));
    one->close().get();
    EXPECT_EQ(ends.result().error().kind(), ErrorKind::cancelled);
    one.reset();
    EXPECT_FALSE(goes_on.ready());
    server.release();
    EXPECT_TRUE(goes_on.result());
}

TEST(Descriptors, ThatRunOutAreAWarningAndAWait) {
    HttpServer const server{[](ReceivedRequest const&) { return Reaction{.delay = 2ms}; }};
    auto const ended = in_child([&] {
        Steps steps;
        HttpClient const http{options(server)};
        steps.expect(http.send({.path = "/"}).result().has_value());
        limit_descriptors(4);
        std::vector<Future<HttpResponse>> pending;
        for (int i = 0; i < 200; ++i) {
            // Each purpose has connections of its own.
            pending.push_back(http.send(
                {.path = "/",
                 .purpose = static_cast<Purpose>(static_cast<unsigned>(i) % purpose_count),
                 .max_retries = 0}));
        }
        for (auto& each : pending) steps.expect(each.result().has_value());
        return std::min(steps.code(), 250);
    });
    EXPECT_TRUE(ended.well()) << "request " << WEXITSTATUS(ended.status) << ' ' << ended.status;
    EXPECT_EQ(ended.lines(), 1) << ended.said;
    EXPECT_THAT(ended.said, HasSubstr("warning: out of file descriptors"));
    EXPECT_THAT(ended.said, HasSubstr("ulimit -n"));
}

}  // namespace
}  // namespace tinkxx::test
