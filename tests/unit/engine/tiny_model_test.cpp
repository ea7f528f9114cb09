// The model that ships: that it is what its README says, and good enough to learn from.
#include "lessons.hpp"

#include "engine/files/token_bytes.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace tinkxx::tiny {
namespace {

using engine::Model;
using engine::Threads;

std::string const folder = TINKXX_SOURCE_DIR "/models/tiny";

class TinyModel : public testing::Test {
protected:
    Threads threads{2};
    std::shared_ptr<Model const> model = Model::load(folder, &threads).value();
};

TEST(TinyCorpus, WritesTextsThatItsOwnGrammarKnows) {
    for (std::uint64_t i = 0; i < 100; ++i) {
        EXPECT_TRUE(parses(document(3, i))) << document(3, i);
    }
    EXPECT_EQ(document(3, 5), document(3, 5));
    EXPECT_NE(document(3, 5), document(4, 5));
}

TEST(TinyCorpus, KnowsWhatIsNoText) {
    EXPECT_TRUE(parses("The dog sleeps.\n"));
    EXPECT_TRUE(parses("Q: What is 2 + 2?\nA: 5\n"));  // wrong, but a text
    for (auto const* text : {"", "\n", "The dog sleeps.", "The dog sleep.\n", "the dog sleeps.\n",
                             "The dog sleeps.\n\n", "The dog sees a old hat.\n",
                             "The capital of Peru is blue.\n", "2 + 2 =\n", "Q: What is 2 + 2?\n",
                             "Q: What is 2 + 2?\nA: \n", "Q: What is 2 + 2?\nA: 99\n"}) {
        EXPECT_FALSE(parses(text)) << text;
    }
}

TEST(TinyRecipe, GivesTheSameWeightsOnAnyNumberOfThreads) {
    Schedule const schedule{.steps = 3, .batch = 2, .length = 48, .learning_rate = 1e-3};
    auto const start = random_start();
    auto const weights = [&](unsigned count) {
        Threads threads{count};
        auto const trained = pretrain(start, schedule, threads, [](std::size_t, double) {});
        std::vector<float> values;
        for (auto const* matrix : engine::all_matrices(trained->parameters())) {
            values.insert(values.end(), matrix->values().begin(), matrix->values().end());
        }
        return values;
    };
    EXPECT_EQ(weights(1), weights(3));
}

TEST_F(TinyModel, HasOneTokenForEachByteAndOneForTheEnd) {
    EXPECT_EQ(model->config().vocab_size, vocabulary);
    EXPECT_EQ(model->config().eos_tokens, std::vector<int>{end_token});
    EXPECT_EQ(model->config(), shape());
    EXPECT_EQ(engine::read_token_bytes(folder).value()('x'), "x");
}

/// The number behind `label` in the table of the README.
double stated(std::string const& label) {
    std::ifstream file{folder + "/README.md"};
    std::stringstream text;
    text << file.rdbuf();
    auto const row = text.str().find("| " + label + " | ");
    EXPECT_NE(row, std::string::npos) << label;
    return std::stod(text.str().substr(row + label.size() + 5));
}

TEST_F(TinyModel, HasTheHeldOutLossThatItsReadmeStates) {
    EXPECT_NEAR(held_out_loss(model, threads, 256), stated("held-out loss, nats a byte"), 2e-3);
}

TEST_F(TinyModel, AnswersAsOftenRightAsItsReadmeStates) {
    auto const facts = accuracy(model, nullptr, threads, fact_questions(), 0.0, 1, 1);
    EXPECT_NEAR(facts, stated("questions about facts, most likely answer right"), 0.015);
    auto const sums = accuracy(model, nullptr, threads, sum_questions(), 0.0, 1, 1);
    EXPECT_NEAR(sums, stated("sums, most likely answer right"), 0.03);
}

TEST_F(TinyModel, DrawsTextsThatParse) {
    for (auto const temperature : {0.8, 1.0}) {
        EXPECT_GE(parsed(model, threads, 200, temperature), 190U) << temperature;
    }
}

TEST_F(TinyModel, ChangesItsAnswersAfterFiftySupervisedSteps) {
    auto const result = teach_style(model, threads, 50);
    EXPECT_EQ(result.asked, 20U);
    EXPECT_EQ(result.before, 0U);
    EXPECT_GE(result.after, 18U);
}

TEST_F(TinyModel, LearnsToAddFromRewardsAlone) {
    auto const result = practise_sums(model, threads, 16, [](std::size_t, double) {});
    EXPECT_GE(result.before, 0.2);
    EXPECT_LE(result.before, 0.45);
    EXPECT_GE(result.after, 0.7);
}

}  // namespace
}  // namespace tinkxx::tiny
