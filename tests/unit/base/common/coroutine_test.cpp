#include <tinkxx/future.hpp>

#include <gtest/gtest.h>

#include <pthread.h>

#include <array>
#include <coroutine>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;

std::string name_of_thread() {
    std::array<char, 32> name{};
    pthread_getname_np(pthread_self(), name.data(), name.size());
    return name.data();
}

/// Sets a flag when it dies.
class Witness {
public:
    explicit Witness(bool& flag) noexcept : flag_{&flag} {}
    Witness(Witness const&) = delete;
    Witness& operator=(Witness const&) = delete;
    ~Witness() { *flag_ = true; }

private:
    bool* flag_;
};

/// The smallest coroutine type of somebody else.
struct Foreign {
    struct promise_type {
        Foreign get_return_object() const noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }
    };
};

Future<int> add_one(Future<int> source) {
    auto const value = co_await source;
    co_return value + 1;
}

TEST(Coroutine, StartsAtOnceAndResumesOnTheExecutor) {
    Runtime runtime;
    Promise<int> promise{runtime};
    std::vector<std::string> where;
    auto const body = [&where](Future<int> source) -> Future<int> {
        where.push_back(name_of_thread());
        auto const value = co_await source;
        where.push_back(name_of_thread());
        co_return value + 1;
    };
    auto future = body(promise.get_future());
    EXPECT_EQ(where.size(), 1U);
    promise.set_value(1);
    EXPECT_EQ(future.get(), 2);
    EXPECT_EQ(where.back(), "tinkxx-callback");
}

TEST(Coroutine, DoesNotSuspendForAReadyFuture) {
    EXPECT_TRUE(add_one(make_ready_future(1)).ready());
    EXPECT_EQ(add_one(add_one(make_ready_future(1))).get(), 3);
}

TEST(Coroutine, ReturnsNothing) {
    bool ran = false;
    auto const body = [&ran]() -> Future<void> {
        auto pending = make_ready_future();
        co_await pending;
        ran = true;
    };
    body().get();
    EXPECT_TRUE(ran);
}

TEST(Coroutine, ThrowsWhatItAwaitsAndPassesErrorsOn) {
    Runtime runtime;
    Promise<int> promise{runtime};
    auto future = add_one(promise.get_future());
    promise.set_error(Error{{.kind = ErrorKind::status, .message = "no"}});
    EXPECT_THROW((void)future.get(), StatusError);

    auto const body = []() -> Future<int> {
        throw std::out_of_range{"far"};
        co_return 1;
    };
    auto const result = body().result();
    EXPECT_EQ(result.error().kind(), ErrorKind::callback);
    EXPECT_THROW(std::rethrow_exception(result.error().exception()), std::out_of_range);
}

TEST(Coroutine, RefusesAnEmptyFuture) {
    EXPECT_THROW((void)add_one(Future<int>{}).get(), UsageError);
}

TEST(Coroutine, CompletesAfterItsLocalsAreGone) {
    bool gone = false;
    Promise<void> promise;
    auto const body = [&gone](Future<void> source) -> Future<int> {
        Witness const local{gone};
        co_await source;
        co_return 1;
    };
    bool gone_at_completion = false;
    auto next = body(promise.get_future()).then([&](int) { gone_at_completion = gone; });
    promise.set_value();
    next.get();
    EXPECT_TRUE(gone_at_completion);
}

TEST(Coroutine, AwaitsASharedFuture) {
    Runtime runtime;
    Promise<std::string> promise{runtime};
    SharedFuture<std::string> const shared = promise.get_future();
    auto const body = [](SharedFuture<std::string> source) -> Future<std::size_t> {
        auto const& value = co_await source;
        co_return value.size();
    };
    auto first = body(shared);
    auto second = body(shared);
    promise.set_value("four");
    EXPECT_EQ(first.get() + second.get(), 8U);
}

TEST(Coroutine, BelongsToTheRuntimeOfTheFirstFutureItAwaits) {
    Runtime runtime;
    Promise<int> promise{runtime};
    auto future = add_one(promise.get_future());
    std::string where;
    auto next = future.then([&](int) { where = name_of_thread(); });
    promise.set_value(1);
    next.get();
    EXPECT_EQ(where, "tinkxx-callback");
}

TEST(Coroutine, CancellingItsFutureCancelsWhatItAwaits) {  // R-FUT-22
    Runtime runtime{{.threads = 0}};
    Promise<int> first{runtime};
    Promise<int> second{runtime};
    int told = 0;
    first.on_cancel([&] { ++told; });
    second.on_cancel([&] { ++told; });
    bool cleaned_up = false;
    auto const body = [&](Future<int> a, Future<int> b) -> Future<int> {
        try {
            (void)co_await a;
        } catch (CancelledError const&) {
            cleaned_up = true;
        }
        co_return co_await b;  // awaited after the cancellation: cancelled as well
    };
    auto future = body(first.get_future(), second.get_future());
    future.cancel();
    EXPECT_TRUE(future.ready());
    EXPECT_EQ(told, 1);
    while (runtime.poll()) {
    }
    EXPECT_TRUE(cleaned_up);
    EXPECT_EQ(told, 2);
    EXPECT_THROW((void)future.get(), CancelledError);
}

TEST(Coroutine, IsDestroyedIfItsRuntimeEndsBeforeItCouldResume) {
    Runtime runtime{{.threads = 0}};
    Promise<int> promise{runtime};
    bool gone = false;
    bool resumed = false;
    auto const body = [&](Future<int> source) -> Future<int> {
        Witness const local{gone};
        auto const value = co_await source;
        resumed = true;
        co_return value;
    };
    auto outer = add_one(body(promise.get_future()));
    promise.set_value(1);  // the resumption waits on the loop
    runtime.shutdown();
    EXPECT_TRUE(gone);
    EXPECT_FALSE(resumed);
    EXPECT_THROW((void)outer.get(), CancelledError);
}

TEST(Coroutine, OfAnotherLibraryLearnsOfTheEndByAnException) {
    Runtime runtime{{.threads = 0}};
    Promise<int> promise{runtime};
    bool cancelled = false;
    auto const body = [&](Future<int> source) -> Foreign {
        try {
            (void)co_await source;
        } catch (CancelledError const&) {
            cancelled = true;
        }
    };
    body(promise.get_future());
    promise.set_value(1);
    runtime.shutdown();
    EXPECT_TRUE(cancelled);
}

TEST(Coroutine, OfAnotherLibraryGetsTheValue) {
    Runtime runtime{{.threads = 0}};
    Promise<int> promise{runtime};
    int got = 0;
    auto const body = [&](Future<int> source) -> Foreign { got = co_await source; };
    body(promise.get_future());
    promise.set_value(9);
    EXPECT_EQ(got, 0);
    runtime.poll();
    EXPECT_EQ(got, 9);
}

TEST(Coroutine, LoopsWithoutGrowing) {
    Runtime runtime{{.threads = 0}};
    auto const body = [](Runtime on) -> Future<int> {
        int sum = 0;
        for (int i = 0; i < 10'000; ++i) {
            Promise<int> promise{on};
            auto pending = promise.get_future();
            on.scheduler().post([own = std::move(promise), i]() mutable { own.set_value(i % 2); });
            sum += co_await pending;
        }
        co_return sum;
    };
    EXPECT_EQ(body(runtime).get(), 5'000);
}

// Arguments that own memory, long enough not to fit inside a string.
struct Params {
    std::string name{};
    std::vector<int> numbers{};
};
class Constructed {
public:
    explicit Constructed(std::string name) : name_{std::move(name)} {}
    [[nodiscard]] std::size_t size() const { return name_.size(); }

private:
    std::string name_;
};
constexpr auto long_name = "a name that is longer than the space inside a string";

Future<std::size_t> by_value(Params params) {
    return make_ready_future(params.name.size() + params.numbers.size());
}
Future<std::size_t> by_reference(Params const& params) {
    return make_ready_future(params.name.size() + params.numbers.size());
}

Future<std::size_t> started_then_awaited() {
    std::size_t sum = 0;
    auto named = by_value({.name = long_name, .numbers = {1, 2, 3}});
    sum += co_await named;
    auto referenced = by_reference({.name = long_name});
    sum += co_await referenced;
    co_return sum;
}

TEST(Coroutine, StartThenAwaitIsFineWithEveryCompiler) {
    auto const n = std::string{long_name}.size();
    EXPECT_EQ(started_then_awaited().get(), (n + 3) + n);
}

// What everybody writes first. It does not compile with g++ 12, which would free arguments twice;
// tests/compile_fail has that. Address sanitizer looks on here.
#if !defined(__GNUC__) || defined(__clang__) || __GNUC__ >= 13
Future<std::size_t> constructed(Constructed params) { return make_ready_future(params.size()); }
Params make_params() { return {.name = long_name, .numbers = {1, 2}}; }
Future<std::size_t> defaulted(Params params = {.name = long_name}) {
    return make_ready_future(params.name.size());
}

Future<std::size_t> in_one_line() {
    std::size_t sum = co_await by_value({.name = long_name, .numbers = {1, 2, 3}});
    sum += co_await by_reference({.name = long_name});
    sum += co_await constructed(Constructed{long_name});
    sum += co_await by_value(make_params());
    sum += co_await defaulted();
    auto const shared = co_await by_value({.name = long_name}).share();
    co_return sum + shared;
}

TEST(Coroutine, CallsCanBeAwaitedInOneLine) {
    auto const n = std::string{long_name}.size();
    EXPECT_EQ(in_one_line().get(), (n + 3) + n + n + (n + 2) + n + n);
}
#endif

}  // namespace
}  // namespace tinkxx
