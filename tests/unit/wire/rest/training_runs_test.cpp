#include "wire/rest/training_runs.hpp"

#include <gtest/gtest.h>

namespace tinkxx::wire {
namespace {

TEST(TrainingRun, TellsWhetherItIsLostAndWhereItsLastCheckpointIs) {  // R-WIRE-07
    auto const run =
        decode_training_run(
            R"({"training_run_id": "S:train:0", "base_model": "org/tiny", "model_owner": "o",
                "is_lora": true, "corrupted": true, "lora_rank": 8,
                "last_request_time": "2026-01-02T03:04:05.678901+00:00", "new_member": [1],
                "last_checkpoint": {"checkpoint_id": "weights/step-10",
                    "checkpoint_type": "frozen", "time": "2026-01-02T03:04:05Z",
                    "tinker_path": "tinker://S:train:0/weights/step-10", "size_bytes": 1048576,
                    "public": true, "expires_at": "2027-01-01T00:00:00Z",
                    "user_metadata": {"a": "b"}},
                "last_sampler_checkpoint": null, "user_metadata": {"k": "v"}})")
            .value();
    TrainingRun expected;
    expected.training_run_id = "S:train:0";
    expected.base_model = "org/tiny";
    expected.model_owner = "o";
    expected.is_lora = true;
    expected.corrupted = true;
    expected.lora_rank = 8;
    expected.last_request_time = *parse_timestamp("2026-01-02T03:04:05.678901+00:00");
    expected.user_metadata = UserMetadata{{"k", "v"}};
    auto& last = expected.last_checkpoint.emplace();
    last.checkpoint_id = "weights/step-10";
    last.checkpoint_type = "frozen";
    last.time = *parse_timestamp("2026-01-02T03:04:05Z");
    last.tinker_path = "tinker://S:train:0/weights/step-10";
    last.size_bytes = 1048576;
    last.is_public = true;
    last.user_metadata = UserMetadata{{"a", "b"}};
    last.expires_at = *parse_timestamp("2027-01-01T00:00:00Z");
    EXPECT_EQ(run, expected);
}

TEST(TrainingRun, NeedsLittle) {  // R-WIRE-07
    auto const run = decode_training_run(
        R"({"training_run_id":"r","base_model":"m","model_owner":"o","is_lora":false,)"
        R"("last_request_time":1767322805})");
    ASSERT_TRUE(run.has_value());
    EXPECT_FALSE(run->corrupted);
    EXPECT_FALSE(run->last_checkpoint);
    auto const wrong = decode_training_run(
        R"({"training_run_id":"r","base_model":"m","model_owner":"o","is_lora":true,)"
        R"("last_request_time":1767322805,"last_checkpoint":{"checkpoint_id":"a"}})");
    ASSERT_FALSE(wrong.has_value());
    EXPECT_EQ(wrong.error().field(), "/last_checkpoint/checkpoint_type");
}

TEST(TrainingRun, NeedsATimeThatIsOne) {  // R-WIRE-07
    auto const run = decode_training_run(
        R"({"training_run_id":"r","base_model":"m","model_owner":"o","is_lora":"true",)"
        R"("last_request_time":"yesterday"})");
    ASSERT_FALSE(run.has_value());
    EXPECT_EQ(run.error().field(), "/last_request_time");
}

TEST(Checkpoints, OfAnyTypeAreListed) {  // R-REST-05
    auto const page =
        decode_checkpoints("list_checkpoints", R"({"checkpoints": [{"checkpoint_id": "frozen/a",
            "checkpoint_type": "frozen", "time": "2026-01-02T03:04:05Z",
            "tinker_path": "tinker://r/frozen/a"}]})");
    ASSERT_TRUE(page.has_value()) << page.error().what();
    EXPECT_EQ(page->checkpoints.at(0).checkpoint_type, "frozen");
    EXPECT_FALSE(page->cursor);
}

TEST(Ttl, OfNothingIsWrittenAsNull) {  // R-REST-00
    EXPECT_EQ(encode_ttl(std::chrono::minutes{1}), R"({"ttl_seconds":60})");
    EXPECT_EQ(encode_ttl(std::nullopt), R"({"ttl_seconds":null})");
}

}  // namespace
}  // namespace tinkxx::wire
