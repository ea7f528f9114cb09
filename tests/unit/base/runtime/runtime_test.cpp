#include <tinkxx/runtime.hpp>

#include <tinkxx/error.hpp>
#include <tinkxx/future.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "base/runtime/runtime_core.hpp"

#include <gtest/gtest.h>

#include <poll.h>
#include <pthread.h>
#include <csignal>

#include <array>
#include <deque>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;
using detail::Resident;

std::string thread_name() {
    std::array<char, 32> name{};
    pthread_getname_np(pthread_self(), name.data(), name.size());
    return name.data();
}

/// Runs `fn` as a callback of `runtime` and waits for it.
template <class Fn>
void in_callback(Runtime const& runtime, Fn fn) {
    std::promise<void> done;
    auto ended = done.get_future();
    runtime.core()->run_callback([&fn, own = std::move(done)]() mutable {
        fn();
        own.set_value();
    });
    ended.wait();
}

/// Runs `fn` on the loop of `runtime` and waits for it.
template <class Fn>
void on_loop_of(Runtime const& runtime, Fn fn) {
    std::promise<void> done;
    auto ended = done.get_future();
    runtime.scheduler().post([&fn, own = std::move(done)]() mutable {
        fn();
        own.set_value();
    });
    ended.wait();
}

/// Keeps tasks until a test runs them.
class ListExecutor final : public Executor {
public:
    void run(Task task) override { tasks.push_back(std::move(task)); }
    std::deque<Task> tasks;
};

class Recorder final : public Resident {
public:
    explicit Recorder(std::function<void()> fn) : fn_{std::move(fn)} {}
    void on_shutdown() noexcept override { fn_(); }

private:
    std::function<void()> fn_;
};

TEST(Runtime, RefusesOptionsThatDoNotFit) {
    try {
        Runtime runtime{{.threads = 2}};
        FAIL();
    } catch (ValidationError const& error) {
        EXPECT_EQ(error.field(), "threads");
        EXPECT_EQ(error.value(), "2");
    }
}

TEST(Runtime, RunsItsLoopOnAThreadThatTakesNoSignals) {  // R-CONF-43
    Runtime runtime;
    on_loop_of(runtime, [&] {
        EXPECT_EQ(thread_name(), "tinkxx-io");
        EXPECT_TRUE(runtime.scheduler().on_loop());
        sigset_t mask;
        pthread_sigmask(SIG_BLOCK, nullptr, &mask);
        EXPECT_TRUE(sigismember(&mask, SIGPIPE));
        EXPECT_TRUE(sigismember(&mask, SIGINT));
        EXPECT_TRUE(sigismember(&mask, SIGTERM));
        EXPECT_FALSE(sigismember(&mask, SIGSEGV));
    });
    sigset_t mine;
    pthread_sigmask(SIG_BLOCK, nullptr, &mine);
    EXPECT_FALSE(sigismember(&mine, SIGPIPE));
}

TEST(Runtime, RunsCallbacksOnAThreadOfTheirOwn) {
    Runtime runtime;
    std::string name;
    bool marked = false;
    in_callback(runtime, [&] {
        name = thread_name();
        marked = runtime.core()->on_sdk_thread();
    });
    EXPECT_EQ(name, "tinkxx-callback");
    EXPECT_TRUE(marked);
    EXPECT_FALSE(runtime.core()->on_sdk_thread());
}

TEST(Runtime, RunsCallbacksOnTheUsersExecutor) {
    auto const executor = std::make_shared<ListExecutor>();
    Runtime runtime{{.executor = executor}};
    std::vector<int> ran;
    runtime.core()->run_callback([&] { ran.push_back(1); });
    runtime.core()->run_callback([&] { ran.push_back(2); });
    ASSERT_EQ(executor->tasks.size(), 2U);
    EXPECT_TRUE(ran.empty());

    executor->tasks[0]();
    EXPECT_EQ(ran, std::vector{1});
    executor->tasks[1]();
    EXPECT_EQ(ran, (std::vector{1, 2}));
    executor->tasks.clear();
}

TEST(Runtime, TellsWhoWaitsForWorkThatTheUsersExecutorDrops) {
    auto const executor = std::make_shared<ListExecutor>();
    Runtime runtime{{.executor = executor}};
    std::promise<Error> told;
    auto answer = told.get_future();
    runtime.core()->run_callback([] { FAIL(); }, [&](Error error) { told.set_value(error); });
    executor->tasks.clear();
    ASSERT_EQ(answer.wait_for(30s), std::future_status::ready) << "nobody was told";
    auto const error = answer.get();
    EXPECT_EQ(error.kind(), ErrorKind::callback);
    EXPECT_NE(std::string_view{error.what()}.find("executor"), std::string_view::npos);
}

TEST(Runtime, TellsWhoWaitsForWorkThatThrows) {
    Runtime runtime;
    std::promise<Error> told;
    auto answer = told.get_future();
    runtime.core()->run_callback([] { throw std::runtime_error{"ouch"}; },
                                 [&](Error error) { told.set_value(error); });
    ASSERT_EQ(answer.wait_for(30s), std::future_status::ready) << "nobody was told";
    auto const error = answer.get();
    EXPECT_EQ(error.kind(), ErrorKind::callback);
    EXPECT_NE(std::string_view{error.what()}.find("ouch"), std::string_view::npos);
}

TEST(Runtime, LetsGoOnTheLoopOfWhatWorkHolds) {
    Runtime const runtime;
    for (bool const throws : {false, true}) {
        std::promise<bool> where;
        auto gone = where.get_future();
        std::shared_ptr<void> held{nullptr,
                                   [&](void*) { where.set_value(runtime.scheduler().on_loop()); }};
        auto otherwise = [held](Error const&) {};
        auto work = [held = std::move(held), throws] {
            if (throws) throw std::runtime_error{"no"};
        };
        runtime.core()->run_callback(std::move(work), std::move(otherwise));
        EXPECT_TRUE(gone.get()) << (throws ? "after work that throws" : "after work that is done");
    }
}

TEST(Runtime, OutlivesAnExecutorThatThrows) {
    class Throwing final : public Executor {
    public:
        void run(Task /*task*/) override { throw std::runtime_error{"full"}; }
    };
    Runtime runtime{{.executor = std::make_shared<Throwing>(), .log_level = LogLevel::off}};
    std::promise<Error> told;
    auto answer = told.get_future();
    runtime.core()->run_callback([] { FAIL(); }, [&](Error error) { told.set_value(error); });
    ASSERT_EQ(answer.wait_for(30s), std::future_status::ready) << "nobody was told";
    EXPECT_EQ(answer.get().kind(), ErrorKind::callback);
    Promise<int> promise{runtime};
    auto next = promise.get_future().then([](int x) { return x; });
    promise.set_value(1);
    EXPECT_EQ(next.result().error().kind(), ErrorKind::cancelled) << "nobody hangs";
}

TEST(Runtime, DropsACallbackThatTheUsersExecutorDrops) {
    auto const executor = std::make_shared<ListExecutor>();
    Runtime runtime{{.executor = executor}};
    auto const token = std::make_shared<int>(0);
    runtime.core()->run_callback([token] {});
    executor->tasks.clear();
    EXPECT_EQ(token.use_count(), 1);
}

TEST(Runtime, RunsInlineCallbacksOnTheLoop) {
    Runtime runtime{{.executor = inline_executor()}};
    std::string name;
    in_callback(runtime, [&] { name = thread_name(); });
    EXPECT_EQ(name, "tinkxx-io");
    on_loop_of(runtime, [&] {
        bool inside = false;
        runtime.core()->run([&] { inside = true; });
        EXPECT_TRUE(inside);
        auto const later = std::make_shared<bool>(false);
        runtime.core()->run_later([later] { *later = true; });
        EXPECT_FALSE(*later);
    });
}

TEST(Runtime, DestroysCallbacksUnrunAfterShutdown) {
    Runtime runtime;
    in_callback(runtime, [] {});
    runtime.shutdown();
    auto const token = std::make_shared<int>(0);
    bool ran = false;
    runtime.core()->run_callback([token, &ran] { ran = true; });
    EXPECT_FALSE(ran);
    EXPECT_EQ(token.use_count(), 1);
}

TEST(Runtime, DestroysCallbacksThatWaitAtShutdownUnrun) {
    auto const executor = std::make_shared<ListExecutor>();
    Runtime runtime{{.executor = executor}};
    auto const token = std::make_shared<int>(0);
    bool ran = false;
    runtime.core()->run_callback([token, &ran] { ran = true; });
    runtime.shutdown();
    EXPECT_EQ(token.use_count(), 1);
    executor->tasks.front()();
    EXPECT_FALSE(ran);
}

TEST(Runtime, TellsResidentsNewestFirstAfterTheTasksPostedBefore) {
    std::vector<std::string> order;
    Recorder first{[&] { order.emplace_back("first"); }};
    Recorder gone{[&] { order.emplace_back("gone"); }};
    Recorder last{[&] { order.emplace_back("last"); }};
    {
        Runtime runtime;
        on_loop_of(runtime, [&] {
            runtime.core()->add(first);
            runtime.core()->add(gone);
            runtime.core()->add(last);
            runtime.core()->remove(gone);
        });
        runtime.scheduler().post([&] { order.emplace_back("task"); });
    }
    EXPECT_EQ(order, (std::vector<std::string>{"task", "last", "first"}));
}

TEST(Runtime, TellsALateResidentAtOnce) {
    Runtime runtime{{.threads = 0}};
    auto const core = runtime.core();
    runtime.shutdown();
    int told = 0;
    Recorder late{[&] { ++told; }};
    core->add(late);
    EXPECT_EQ(told, 1);
}

TEST(Runtime, TakesShutdownFromACallback) {
    Runtime runtime;
    in_callback(runtime, [&] {
        runtime.shutdown();
        runtime.shutdown();
        EXPECT_TRUE(runtime.shut_down());
    });
    runtime.shutdown();
}

TEST(Runtime, WaitsAtItsEndForTheCallbackThatIsRunning) {
    bool finished = false;
    std::latch started{1};
    bool second_ran = false;
    {
        Runtime runtime;
        auto const core = runtime.core();
        core->run_callback([&finished, &started, watched = core.get()] {
            started.count_down();
            while (!watched->shut_down()) std::this_thread::yield();
            finished = true;
        });
        core->run_callback([&second_ran] { second_ran = true; });
        started.wait();
    }
    EXPECT_TRUE(finished);
    EXPECT_FALSE(second_ran);
}

TEST(Runtime, MayEndInsideItsOwnCallback) {
    std::promise<void> end;
    auto ended = end.get_future();
    {
        auto runtime = std::make_unique<Runtime>();
        auto const core = runtime->core();
        core->run_callback([said = std::move(end), owned = std::move(runtime)]() mutable {
            owned.reset();
            said.set_value();
        });
    }
    ended.wait();
}

TEST(Runtime, MayEndOnItsOwnLoop) {
    std::promise<void> end;
    auto ended = end.get_future();
    {
        auto runtime = std::make_unique<Runtime>();
        auto* const handle = runtime.get();
        handle->scheduler().post([said = std::move(end), owned = std::move(runtime)]() mutable {
            owned.reset();
            said.set_value();
        });
    }
    ended.wait();
}

TEST(Runtime, IsSharedWhileSomeoneHoldsIt) {  // R-CONF-43
    std::weak_ptr<detail::RuntimeCore> first;
    {
        auto const one = Runtime::shared();
        auto const two = Runtime::shared();
        EXPECT_EQ(one.core(), two.core());
        first = one.core();
    }
    EXPECT_TRUE(first.expired());
    auto const again = Runtime::shared();
    EXPECT_FALSE(again.shut_down());
}

TEST(Runtime, StartsANewSharedOneOnceTheOldIsShutDown) {
    auto one = Runtime::shared();
    one.shutdown();
    EXPECT_FALSE(Runtime::shared().shut_down());
}

TEST(Runtime, OutlivesACallbackThatThrows) {
    std::promise<std::string> logged;
    Runtime runtime{{.log = [&](LogLevel level, std::string_view line) {
        EXPECT_EQ(level, LogLevel::error);
        logged.set_value(std::string{line});
    }}};
    runtime.core()->run_callback([] { throw std::runtime_error{"ouch"}; });
    EXPECT_EQ(logged.get_future().get(), "a callback threw: ouch");
}

TEST(Runtime, OutlivesATaskThatThrows) {
    std::promise<std::string> logged;
    Runtime runtime{
        {.log = [&](LogLevel, std::string_view line) { logged.set_value(std::string{line}); }}};
    runtime.scheduler().post([] { throw std::runtime_error{"ouch"}; });
    EXPECT_EQ(logged.get_future().get(), "the event loop caught: ouch");
    on_loop_of(runtime, [] {});
}

TEST(Runtime, LogsThroughTheCallbackExecutor) {
    auto const executor = std::make_shared<ListExecutor>();
    std::vector<std::string> lines;
    Runtime runtime{{.executor = executor,
                     .log = [&](LogLevel, std::string_view line) { lines.emplace_back(line); },
                     .log_level = LogLevel::info}};
    runtime.core()->log(LogLevel::debug, "too fine");
    runtime.core()->log(LogLevel::info, "one");
    EXPECT_TRUE(lines.empty());
    ASSERT_EQ(executor->tasks.size(), 1U);
    executor->tasks.front()();
    EXPECT_EQ(lines, std::vector<std::string>{"one"});
    executor->tasks.clear();
}

TEST(Runtime, WritesWarningsToStderrWithoutASink) {  // C-68
    Runtime runtime{{.threads = 0}};
    ::testing::internal::CaptureStderr();
    runtime.core()->log(LogLevel::info, "not shown");
    runtime.core()->log(LogLevel::warning, "shown");
    runtime.core()->log(LogLevel::error, "shown too");
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "tinkxx: warning: shown\ntinkxx: error: shown too\n");
}

TEST(Runtime, SurvivesALogSinkThatThrows) {
    Runtime runtime{{.threads = 0, .log = [](LogLevel, std::string_view) { throw 1; }}};
    runtime.core()->log(LogLevel::error, "line");
    EXPECT_TRUE(runtime.poll());
    EXPECT_FALSE(runtime.poll());
}

TEST(ZeroThreads, RunsEverythingInsidePoll) {
    Runtime runtime{{.threads = 0}};
    std::vector<int> ran;
    runtime.scheduler().post([&] { ran.push_back(1); });
    runtime.core()->run_callback([&] { ran.push_back(2); });
    EXPECT_TRUE(ran.empty());
    EXPECT_TRUE(runtime.poll());
    EXPECT_EQ(ran, (std::vector{1, 2}));
    EXPECT_FALSE(runtime.poll());
}

TEST(ZeroThreads, RefusesPollWhereItCannotWork) {
    Runtime threaded;
    EXPECT_THROW(threaded.poll(), UsageError);

    Runtime runtime{{.threads = 0}};
    int refused = 0;
    auto const try_it = [&] {
        try {
            runtime.poll();
        } catch (UsageError const&) {
            ++refused;
        }
    };
    runtime.core()->run_callback(try_it);
    runtime.scheduler().post(try_it);
    while (runtime.poll()) {
    }
    EXPECT_EQ(refused, 2);
}

bool readable(int descriptor) {
    pollfd watched{.fd = descriptor, .events = POLLIN, .revents = 0};
    return ::poll(&watched, 1, 0) == 1;
}

TEST(ZeroThreads, AnOwnLoopLearnsOfWorkFromOtherThreads) {
    Runtime runtime{{.threads = 0}};
    while (runtime.poll()) {
    }
    EXPECT_EQ(runtime.wait_time(), std::nullopt);
    EXPECT_FALSE(readable(runtime.descriptor()));
    bool ran = false;
    std::thread{[&] { runtime.scheduler().post([&ran] { ran = true; }); }}.join();
    EXPECT_TRUE(readable(runtime.descriptor()));
    EXPECT_EQ(runtime.wait_time(), 0ns);
    EXPECT_TRUE(runtime.poll());
    EXPECT_TRUE(ran);
    while (runtime.poll()) {
    }
    EXPECT_EQ(runtime.wait_time(), std::nullopt);
    EXPECT_FALSE(readable(runtime.descriptor())) << "it would spin";
}

TEST(ZeroThreads, AnOwnLoopLearnsOfTimers) {
    struct Bell final : Timer {
        void on_time() override { rang = true; }
        bool rang{false};
    } bell;
    Runtime runtime{{.threads = 0}};
    runtime.scheduler().post([&] {
        auto& on = runtime.scheduler();
        on.arm(bell, on.now() + 1h, Precision::exact);
    });
    while (runtime.poll()) {
    }
    auto const time = runtime.wait_time();
    ASSERT_TRUE(time);
    EXPECT_GT(*time, 59min);
    EXPECT_LE(*time, 1h);
    runtime.scheduler().post([&] {
        auto& on = runtime.scheduler();
        on.arm(bell, on.now(), Precision::exact);
    });
    EXPECT_EQ(runtime.wait_time(), 0ns);
    while (!bell.rang) runtime.poll();
}

TEST(ZeroThreads, OnlyALoopOfItsOwnCanBeWaitedFor) {
    Runtime const threaded;
    EXPECT_THROW((void)threaded.descriptor(), UsageError);
    EXPECT_THROW((void)threaded.wait_time(), UsageError);
    Runtime const manual{{.threads = 0, .scheduler = std::make_shared<testing::ManualClock>()}};
    EXPECT_THROW((void)manual.descriptor(), UsageError);
}

TEST(ZeroThreads, ShutsDownOnTheCallingThread) {
    std::vector<std::string> order;
    Recorder resident{[&] { order.emplace_back("resident"); }};
    Runtime runtime{{.threads = 0}};
    runtime.scheduler().post([&] {
        runtime.core()->add(resident);
        order.emplace_back("task");
    });
    runtime.shutdown();
    EXPECT_EQ(order, (std::vector<std::string>{"task", "resident"}));
    EXPECT_FALSE(runtime.poll());
}

TEST(ZeroThreads, FinishesAShutdownThatACallbackAskedFor) {
    bool told = false;
    Recorder resident{[&] { told = true; }};
    auto runtime = std::make_unique<Runtime>(RuntimeOptions{.threads = 0});
    runtime->scheduler().post([&] { runtime->core()->add(resident); });
    runtime->poll();
    runtime->core()->run_callback([&] {
        runtime.reset();
        EXPECT_FALSE(told);
    });
    runtime->poll();
    EXPECT_TRUE(told);
}

TEST(ZeroThreads, LetsAnotherThreadShutDownABlockedPoll) {
    Runtime runtime{{.threads = 0}};
    std::latch started{1};
    runtime.scheduler().post([&] { started.count_down(); });
    std::thread poller{[&] {
        while (!runtime.shut_down()) runtime.poll(std::chrono::nanoseconds::max());
    }};
    started.wait();
    runtime.shutdown();
    poller.join();
}

}  // namespace
}  // namespace tinkxx
