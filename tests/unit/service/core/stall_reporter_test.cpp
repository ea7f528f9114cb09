#include "service/core/stall_reporter.hpp"

#include <tinkxx/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A call that stands where the test says.
class Call final : public PendingEntry {
public:
    explicit Call(std::string name, std::optional<TimePoint> stalled_since = std::nullopt)
        : since{stalled_since}, name_{std::move(name)} {}

    std::optional<TimePoint> since{};
    bool is_background{false};
    mutable int looks{0};

private:
    OperationStatus status(TimePoint now) const override {
        ++looks;
        OperationStatus status;
        status.operation = name_;
        status.why = "no";
        if (since) status.stalled = now - *since;
        return status;
    }
    void on_close() noexcept override {}
    bool background() const noexcept override { return is_background; }

    std::string name_;
};

/// A client as `ClientCore` is one.
class Watched final : public StallReporter::Client {
public:
    Watched(StallReporter& reporter, Scheduler& scheduler, std::string server,
            void const* log = nullptr)
        : reporter_{reporter}, topic_{std::move(server), log} {
        list.on_first([this, &scheduler] { reporter_.watch(*this, scheduler); });
    }
    ~Watched() override { reporter_.forget(*this); }

    PendingList list{nullptr};
    std::vector<std::string> lines{};

private:
    PendingList const& watched() const noexcept override { return list; }
    StallReporter::Topic topic() const override { return topic_; }
    void warn(std::string const& line) override { lines.push_back(line); }

    StallReporter& reporter_;
    StallReporter::Topic topic_;
};

class StallReporterTest : public ::testing::Test {
protected:
    testing::ManualClock clock_{};
    StallReporter reporter_{};
    Watched client_{reporter_, clock_, "http://a"};
};

TEST_F(StallReporterTest, WarnsAfterFiveSecondsAndThenEveryMinute) {
    Call call{"sample", clock_.now()};
    client_.list.add(call);
    clock_.advance(5s - 1ns);
    EXPECT_THAT(client_.lines, IsEmpty());
    clock_.advance(1ns);
    EXPECT_THAT(client_.lines, ElementsAre("sample has waited 5.0 s: no"));
    clock_.advance(60s - 1ns);
    EXPECT_THAT(client_.lines, SizeIs(1));
    clock_.advance(1ns);
    EXPECT_THAT(client_.lines,
                ElementsAre("sample has waited 5.0 s: no", "sample has waited 65 s: no"));
    client_.list.remove(call);
}

TEST_F(StallReporterTest, CountsFromTheMomentTheTroubleBegan) {
    Call call{"sample"};
    client_.list.add(call);
    clock_.advance(12s);
    call.since = clock_.now();
    clock_.advance(5s - 1ns);
    EXPECT_THAT(client_.lines, IsEmpty());
    clock_.advance(1ns);
    EXPECT_THAT(client_.lines, SizeIs(1));
    client_.list.remove(call);
}

TEST_F(StallReporterTest, ACallThatIsWellIsNoNews) {
    Call well{"sample"};
    Call watch{"watch", clock_.now()};
    watch.is_background = true;
    client_.list.add(well);
    client_.list.add(watch);
    clock_.advance(1h);
    EXPECT_THAT(client_.lines, IsEmpty());
    client_.list.remove(well);
    client_.list.remove(watch);
}

TEST_F(StallReporterTest, AMillionCallsAreOneLineAndAFewLooks) {
    std::vector<std::unique_ptr<Call>> calls;
    for (int i = 0; i < 1'000'000; ++i) {
        calls.push_back(std::make_unique<Call>(i == 3 ? "oldest" : "sample",
                                               clock_.now() + (i == 3 ? 0s : 2s)));
        client_.list.add(*calls.back());
    }
    clock_.advance(5s);
    EXPECT_THAT(client_.lines,
                ElementsAre("1000000 calls are pending; oldest has waited 5.0 s: no"));
    int looks = 0;
    for (auto const& call : calls) looks += call->looks;
    EXPECT_LE(looks, static_cast<int>(StallReporter::looked_at));
    for (auto const& call : calls) client_.list.remove(*call);
}

TEST_F(StallReporterTest, ClientsOfOneServerAndLogShareALine) {
    int own_log = 0;
    Watched same{reporter_, clock_, "http://a"};
    Watched elsewhere{reporter_, clock_, "http://b"};
    Watched apart{reporter_, clock_, "http://a", &own_log};
    Call first{"first", clock_.now()};
    Call second{"second", clock_.now() + 1s};
    Call third{"third", clock_.now()};
    Call fourth{"fourth", clock_.now()};
    same.list.add(second);
    client_.list.add(first);
    elsewhere.list.add(third);
    apart.list.add(fourth);
    clock_.advance(6s);
    // One second later the other client has waited long enough too, and is silent about it.
    EXPECT_THAT(client_.lines, ElementsAre("first has waited 5.0 s: no"));
    EXPECT_THAT(same.lines, IsEmpty());
    EXPECT_THAT(elsewhere.lines, ElementsAre("third has waited 5.0 s: no"));
    EXPECT_THAT(apart.lines, ElementsAre("fourth has waited 5.0 s: no"));
    clock_.advance(59s);
    EXPECT_THAT(client_.lines, ElementsAre("first has waited 5.0 s: no",
                                           "2 calls are pending; first has waited 65 s: no"));
    EXPECT_THAT(same.lines, IsEmpty());
    client_.list.remove(first);
    same.list.remove(second);
    elsewhere.list.remove(third);
    apart.list.remove(fourth);
}

TEST_F(StallReporterTest, NoTimerIsLeftWhenNothingIsPending) {
    Call call{"sample", clock_.now()};
    client_.list.add(call);
    client_.list.remove(call);
    EXPECT_EQ(clock_.pending_timers(), 1U);
    clock_.advance(5s);
    EXPECT_EQ(clock_.pending_timers(), 0U);
    EXPECT_THAT(client_.lines, IsEmpty());
    // And it begins anew.
    call.since = clock_.now();
    client_.list.add(call);
    clock_.advance(5s);
    EXPECT_THAT(client_.lines, SizeIs(1));
    client_.list.remove(call);
}

TEST_F(StallReporterTest, AClientThatGoesAwayIsForgotten) {
    Call call{"sample", clock_.now()};
    {
        Watched passing{reporter_, clock_, "http://c"};
        passing.list.add(call);
        passing.list.remove(call);
    }
    clock_.advance(1h);
    EXPECT_EQ(clock_.pending_timers(), 0U);
}

TEST(StallText, SaysWhyAndUntilWhen) {
    OperationStatus status;
    status.operation = "sample";
    status.stalled = 5s;
    status.why = "429 too many requests";
    EXPECT_EQ(stall_text(status, 1), "sample has waited 5.0 s: 429 too many requests");
    status.gives_up_in = 290s;
    EXPECT_EQ(stall_text(status, 1),
              "sample has waited 5.0 s: 429 too many requests; gives up in 5 min");
    status.ends_in = 2s;
    status.deadline_in = 30s;
    EXPECT_EQ(stall_text(status, 12),
              "12 calls are pending; sample has waited 5.0 s: 429 too many requests; next attempt "
              "in 2.0 s, gives up in 30 s");
}

}  // namespace
}  // namespace tinkxx::service
