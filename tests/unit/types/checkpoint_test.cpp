#include <tinkxx/types/checkpoint.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tinkxx {
namespace {

TEST(CheckpointPath, HasThreeParts) {  // R-REST-01
    auto const path = parse_checkpoint_path("tinker://a:train:0/sampler_weights/x.y");
    ASSERT_TRUE(path.has_value());
    EXPECT_EQ(path->training_run_id, "a:train:0");
    EXPECT_EQ(path->kind, CheckpointKind::sampler_weights);
    EXPECT_EQ(path->name, "x.y");
    EXPECT_EQ(path->checkpoint_id(), "sampler_weights/x.y");
    EXPECT_EQ(to_string(*path), "tinker://a:train:0/sampler_weights/x.y");
    EXPECT_EQ(checkpoint_type(CheckpointKind::weights), "training");
    EXPECT_EQ(checkpoint_type(CheckpointKind::sampler_weights), "sampler");
    EXPECT_EQ(checkpoint_type(CheckpointKind::external_weights), "external");
}

TEST(CheckpointPath, OfAnyOtherFormIsNamedInTheError) {  // R-REST-01
    for (std::string const text :
         {"", "tinker://", "tinker://r/n", "tinker://r/weights/", "tinker:///weights/n",
          "tinker://r/weights/a/b", "tinker://r/other/n", "http://r/weights/n", "r/weights/n",
          "TINKER://r/weights/n", "tinker://r//n"}) {
        auto const path = parse_checkpoint_path(text);
        ASSERT_FALSE(path.has_value()) << text;
        EXPECT_EQ(path.error().kind(), ErrorKind::validation);
        EXPECT_EQ(path.error().field(), "path");
        EXPECT_THAT(path.error().what(), ::testing::HasSubstr('"' + text + '"'));
        EXPECT_THAT(path.error().what(), ::testing::HasSubstr("tinker://<run>/<kind>/<name>"));
    }
}

}  // namespace
}  // namespace tinkxx
