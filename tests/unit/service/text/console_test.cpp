// Addresses of pages, made of ids alone.
#include <tinkxx/console.hpp>
#include <tinkxx/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx::console {
namespace {

TEST(Console, HasAPageForEachThing) {  // R-TRAIN-69
    EXPECT_EQ(sessions_url(), "https://tinker.thinkingmachines.ai/sessions");
    EXPECT_EQ(session_url("0e7c-1"), "https://tinker.thinkingmachines.ai/sessions/0e7c-1");
    EXPECT_EQ(training_run_url("0e7c-1:train:0"),
              "https://tinker.thinkingmachines.ai/training_runs/0e7c-1:train:0");
    EXPECT_EQ(checkpoint_url("tinker://0e7c-1:train:0/weights/step-10"),
              "https://tinker.thinkingmachines.ai/checkpoints/0e7c-1%3Atrain%3A0/"
              "weights%2Fstep-10");
    EXPECT_EQ(playground_url("tinker://r1/sampler_weights/a b"),
              "https://tinker.thinkingmachines.ai/playground?mode=checkpoint&checkpoint="
              "tinker%3A%2F%2Fr1%2Fsampler_weights%2Fa%20b");
}

TEST(Console, MayBeElsewhere) {  // R-TRAIN-69
    EXPECT_EQ(training_run_url("r1", "http://127.0.0.1:3000"),
              "http://127.0.0.1:3000/training_runs/r1");
    EXPECT_EQ(session_url("a/../b?c=\xC3\xA9", "http://c"),
              "http://c/sessions/a%2F..%2Fb%3Fc%3D%C3%A9");
}

TEST(Console, RefusesPathsThatAreNoCheckpoints) {  // R-TRAIN-69
    for (char const* const path :
         {"", "hello", "tinker://", "tinker://r1", "tinker://r1/", "tinker://r1/weights",
          "tinker://r1/weights/", "tinker://r1/other/x", "tinker:///weights/x",
          "tinker://r1/weights/x/y", "https://r1/weights/x"}) {
        try {
            (void)checkpoint_url(path);
            ADD_FAILURE() << path;
        } catch (ValidationError const& error) {
            EXPECT_EQ(error.field(), "path");
            EXPECT_THAT(error.what(), ::testing::HasSubstr("tinker://<run>/weights/<name>"));
        }
        EXPECT_THROW((void)playground_url(path), ValidationError) << path;
    }
}

}  // namespace
}  // namespace tinkxx::console
