#include <tinkxx/types/queue_state.hpp>
#include <tinkxx/types/sampling.hpp>

#include <gtest/gtest.h>

namespace tinkxx {
namespace {

TEST(Stop, TakesTextsAndTokensInEveryForm) {  // R-SAMP-05
    SamplingParams params;
    EXPECT_FALSE(params.stop.set());
    params.stop = "\n";
    EXPECT_EQ(params.stop.value(), Stop::Value{std::string{"\n"}});
    params.stop = {"\n\n", "END"};
    EXPECT_EQ(params.stop.value(), (Stop::Value{std::vector<std::string>{"\n\n", "END"}}));
    params.stop = {"one"};
    EXPECT_EQ(params.stop.value(), (Stop::Value{std::vector<std::string>{"one"}}));
    params.stop = {128001, 128009};
    EXPECT_EQ(params.stop.value(), (Stop::Value{std::vector<Token>{128001, 128009}}));
    params.stop = {0};
    EXPECT_EQ(params.stop.value(), (Stop::Value{std::vector<Token>{0}}));
    params.stop = std::string{"text"};
    EXPECT_TRUE(params.stop.set());
    params.stop = Stop{};
    EXPECT_FALSE(params.stop.set());
}

TEST(Stop, TellsNowhereFromTheEndOfTheSequence) {  // R-SAMP-05
    EXPECT_NE(Stop::nowhere(), Stop{});
    EXPECT_TRUE(Stop::nowhere().set());
    EXPECT_EQ(Stop{std::vector<Token>{}}, Stop::nowhere());
    EXPECT_EQ(Stop{std::vector<std::string>{}}, Stop::nowhere());
}

TEST(QueueState, HasTheWordsOfTheService) {  // R-FUT-30
    for (auto const state : {QueueState::active, QueueState::paused_rate_limit,
                             QueueState::paused_capacity, QueueState::unknown}) {
        EXPECT_EQ(parse_queue_state(to_string(state)), state);
    }
    EXPECT_EQ(to_string(QueueState::paused_capacity), "paused_capacity");
    EXPECT_EQ(to_string(QueueState::unknown), "unknown");
}

TEST(QueueState, IsReadInAnyCaseAndFallsBackToUnknown) {  // R-FUT-30; C-45
    EXPECT_EQ(parse_queue_state(" PAUSED_Capacity\n"), QueueState::paused_capacity);
    for (auto const* text : {"", " ", "paused", "actives", "new_state"}) {
        EXPECT_EQ(parse_queue_state(text), QueueState::unknown) << text;
    }
}

}  // namespace
}  // namespace tinkxx
