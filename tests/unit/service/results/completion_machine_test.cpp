#include "service/results/completion_machine.hpp"

#include "service/http/http_error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Operation const poll{.method = "POST", .path = "/api/v1/retrieve_futures"};

Error status(int code) {
    Head head;
    head.status = code;
    return Error{status_error(poll, head, "{}", {}, {})};
}

bool gives_up(CompletionMachine::Action const& action) {
    return std::holds_alternative<CompletionMachine::FallBack>(action);
}

TEST(CompletionMachine, ReportsFetchedResultsInOrderUntilAPollSucceeds) {  // R-FUT-64
    CompletionMachine machine;
    EXPECT_FALSE(machine.has_unreported());
    machine.retrieved("b");
    machine.retrieved("a");
    EXPECT_THAT(machine.begin(), ElementsAre("a", "b"));
    (void)machine.on_error(status(503));
    machine.retrieved("c");
    EXPECT_THAT(machine.begin(), ElementsAre("a", "b", "c"));
    machine.retrieved("d");
    (void)machine.on_success(1);
    EXPECT_TRUE(machine.has_unreported()) << "what came while it was under way is still to be told";
    EXPECT_THAT(machine.begin(), ElementsAre("d"));
    (void)machine.on_success(2);
    EXPECT_FALSE(machine.has_unreported());
    EXPECT_THAT(machine.begin(), IsEmpty());
}

TEST(CompletionMachine, RemembersTheCursorOfTheLastSuccess) {  // R-FUT-60, R-FUT-62
    CompletionMachine machine;
    EXPECT_EQ(machine.cursor(), 0);
    EXPECT_FALSE(machine.on_success(0));
    EXPECT_TRUE(machine.on_success(7));
    (void)machine.on_error(status(500));
    EXPECT_EQ(machine.cursor(), 7);
    EXPECT_FALSE(machine.on_success(7));
}

TEST(CompletionMachine, TriesAgainAfterASecondWhatMayPass) {  // R-FUT-65
    CompletionMachine machine;
    for (int const code : {408, 409, 429, 500, 503, 599}) {
        auto const action = machine.on_error(status(code));
        ASSERT_TRUE(std::holds_alternative<CompletionMachine::Again>(action)) << code;
        EXPECT_EQ(std::get<CompletionMachine::Again>(action).delay, 1s);
    }
    for (auto const kind : {FailureKind::reset, FailureKind::read_timeout, FailureKind::connect}) {
        auto const action = machine.on_error(Error{failure_error(poll, {.kind = kind}, {})});
        ASSERT_TRUE(std::holds_alternative<CompletionMachine::Again>(action));
        EXPECT_EQ(std::get<CompletionMachine::Again>(action).delay, 1s);
    }
}

TEST(CompletionMachine, GivesUpAtTheFourth400InARow) {  // R-FUT-65
    CompletionMachine machine;
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(gives_up(machine.on_error(status(400))));
    (void)machine.on_success(0);
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(gives_up(machine.on_error(status(400)))) << i;
    EXPECT_TRUE(gives_up(machine.on_error(status(400))));
}

TEST(CompletionMachine, AsksWhetherABillingBlockIsWaitedOut) {  // R-FUT-65
    CompletionMachine machine;
    ASSERT_TRUE(
        std::holds_alternative<CompletionMachine::AskBilling>(machine.on_error(status(402))));
    auto const action = machine.on_billing(true);
    ASSERT_TRUE(std::holds_alternative<CompletionMachine::Again>(action));
    EXPECT_EQ(std::get<CompletionMachine::Again>(action).delay, 5s);
    EXPECT_TRUE(gives_up(machine.on_billing(false)));
}

TEST(CompletionMachine, GivesUpAtAnythingElse) {  // R-FUT-65
    for (int const code : {301, 401, 403, 404, 405, 410, 422}) {
        CompletionMachine machine;
        EXPECT_TRUE(gives_up(machine.on_error(status(code)))) << code;
    }
    CompletionMachine machine;
    EXPECT_TRUE(gives_up(
        machine.on_error(Error{failure_error(poll, {.kind = FailureKind::invalid_request}, {})})));
    EXPECT_TRUE(gives_up(machine.on_error(Error{{.kind = ErrorKind::cancelled}})));
}

}  // namespace
}  // namespace tinkxx::service
