// REST and admin clients against the server in its own process.
#include "local_fixture.hpp"

#include <tinkxx/admin_client.hpp>
#include <tinkxx/rest_client.hpp>

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tinkxx::local {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RestTest : public LocalTest {
protected:
    RestTest() { client_options.user_metadata = {{"owner", "ada"}}; }

    TrainingClient trainer() {
        return service().create_lora_training_client("test/bytes", 4).get();
    }
    RestClient rest() { return service().create_rest_client(); }
    AdminClient admin() { return service().create_admin_client(); }
};

TEST_F(RestTest, ListsRunsAndCheckpoints) {  // R-REST-00
    EXPECT_THAT(rest().list_training_runs().get().training_runs, IsEmpty());
    auto const first = trainer();
    auto const second = trainer();
    (void)first.save_state("a").get();
    (void)first.save_weights_for_sampler("b").get();
    (void)second.save_state("c").get();

    std::vector<std::string> runs;
    for (auto const& run : rest().training_runs({.limit = 1})) {
        EXPECT_EQ(run.base_model, "test/bytes");
        EXPECT_EQ(run.lora_rank, 4);
        EXPECT_FALSE(run.corrupted);
        runs.push_back(run.training_run_id);
    }
    EXPECT_THAT(runs, ::testing::UnorderedElementsAre(first.model_id(), second.model_id()));
    auto const run = rest().get_training_run(first.model_id()).get();
    EXPECT_EQ(run.last_checkpoint->checkpoint_id, "weights/a");
    EXPECT_EQ(run.last_sampler_checkpoint->checkpoint_id, "sampler_weights/b");

    auto const of_one = rest().list_checkpoints(first.model_id()).get().checkpoints;
    EXPECT_THAT(of_one, SizeIs(2));
    std::vector<std::string> ids;
    for (auto const& checkpoint : rest().user_checkpoints({.limit = 2})) {
        EXPECT_GT(checkpoint.size_bytes.value_or(0), 0);
        ids.push_back(checkpoint.checkpoint_id);
    }
    EXPECT_THAT(ids,
                ::testing::UnorderedElementsAre("weights/a", "sampler_weights/b", "weights/c"));
    auto const info = rest().get_weights_info(run.last_checkpoint->tinker_path).get();
    EXPECT_EQ(info.lora_rank, 4);
    EXPECT_EQ(rest().get_training_run("nobody").result().error().http_status(), 404);
}

TEST_F(RestTest, PublishesExpiresAndDeletes) {  // R-REST-00
    auto const model = trainer();
    auto const path = model.save_state("a").get().path;
    auto const listed = [&] { return rest().list_checkpoints(model.model_id()).get().checkpoints; };
    rest().publish_checkpoint(path).get();
    EXPECT_TRUE(listed().at(0).is_public);
    EXPECT_EQ(rest().publish_checkpoint(path).result().error().http_status(), 409);
    rest().unpublish_checkpoint({model.model_id(), "weights/a"}).get();
    EXPECT_FALSE(listed().at(0).is_public);

    EXPECT_FALSE(listed().at(0).expires_at);
    rest().set_checkpoint_ttl(path, 2h).get();
    auto const wall = std::chrono::floor<std::chrono::microseconds>(clock->wall());
    EXPECT_LE(listed().at(0).expires_at->time - wall, 2h);
    EXPECT_GT(listed().at(0).expires_at->time - wall, 1h);
    rest().set_checkpoint_ttl(path, std::nullopt).get();
    EXPECT_FALSE(listed().at(0).expires_at);

    rest().delete_checkpoint(path).get();
    EXPECT_THAT(listed(), IsEmpty());
    EXPECT_EQ(rest().delete_checkpoint(path).result().error().http_status(), 404);
}

TEST_F(RestTest, FetchesAnArchive) {  // R-REST-10, R-CLI-10, R-CLI-11
    auto const model = trainer();
    auto const path = model.save_weights_for_sampler("s").get().path;
    DownloadOptions options;
    options.target = home.path() / "fetched" / "weights";
    auto const made = rest().download_checkpoint(path, options).get();
    EXPECT_EQ(made.folder, options.target);
    // What libarchive packed there is taken apart here.
    EXPECT_THAT(made.files, Contains(Field(&DownloadedFile::name, "adapter_model.safetensors")));
    EXPECT_THAT(made.files, Contains(Field(&DownloadedFile::name, "adapter_config.json")));
    EXPECT_THAT(made.files, Contains(Field(&DownloadedFile::name, "checkpoint_complete")));
    for (auto const& file : made.files) {
        EXPECT_EQ(std::filesystem::file_size(options.target / file.name),
                  static_cast<std::uintmax_t>(file.bytes));
    }
    EXPECT_THAT(rest().download_checkpoint(path, options).result().error().what(),
                HasSubstr("is there already"));
}

TEST_F(RestTest, FetchesExternalWeights) {  // R-REST-12
    auto const model = trainer();
    auto const path = model.save_weights_external("e").get().path;
    auto const links = rest().get_external_weights_urls(path).get();
    EXPECT_FALSE(links.urls.empty());
    DownloadOptions options;
    options.target = home.path() / "external";
    auto const made = rest().download_checkpoint(path, options).get();
    EXPECT_THAT(made.files, SizeIs(links.urls.size()));
    EXPECT_THAT(made.files, Contains(Field(&DownloadedFile::name, "adapter_model.safetensors")));
    EXPECT_FALSE(std::filesystem::exists(home.path() / "external.partial"));
}

TEST_F(RestTest, ListsAndSearchesSessions) {  // R-REST-00, R-REST-04
    auto const model = trainer();
    (void)model.save_state("a").get();
    auto const id = service().session_id().get();
    std::vector<std::string> ids;
    for (auto const& session : rest().sessions()) ids.push_back(session);
    EXPECT_THAT(ids, ElementsAre(id));
    auto const session = rest().get_session(id).get();
    EXPECT_THAT(session.training_run_ids, ElementsAre(model.model_id()));
    EXPECT_EQ(session.user_metadata->at("owner"), "ada");

    SessionSearch search;
    search.user_metadata = {{"owner", "ada"}};
    auto const found = rest().search_sessions(search).get();
    ASSERT_THAT(found.sessions, SizeIs(1));
    EXPECT_EQ(found.sessions[0].session_id, id);
    EXPECT_EQ(found.sessions[0].checkpoints_count, 1);
    search.user_metadata = {{"owner", "eve"}};
    EXPECT_THAT(rest().search_sessions(search).get().sessions, IsEmpty());
    rest().assign_session_project(id, "p1").get();
    EXPECT_THAT(rest().list_training_runs({.project_id = "p1"}).get().training_runs, SizeIs(1));
}

TEST_F(RestTest, TellsWhatWasUsed) {  // R-REST-03
    auto const model = trainer();
    std::vector const batch{text_datum("red is a colour.")};
    (void)model.forward_backward(batch, LossFn::cross_entropy).get();
    (void)model.save_state("a").get();
    auto const now = std::chrono::floor<std::chrono::hours>(clock->wall());
    auto const usage = admin()
                           .get_billing_usage({.time = now - std::chrono::hours{1}},
                                              {.time = now + std::chrono::hours{2}})
                           .get();
    ASSERT_FALSE(usage.data.empty());
    EXPECT_TRUE(std::ranges::any_of(usage.data, [](BillingUsageEvent const& event) {
        return event.event_info.type == "training" && event.event_info.token_count > 0;
    }));
    EXPECT_EQ(usage.sessions.at(service().session_id().get()).user_metadata->at("owner"), "ada");
    auto const storage = admin().get_current_checkpoint_storage_usage().get();
    ASSERT_FALSE(storage.data.empty());
    EXPECT_EQ(storage.data[0].checkpoint_count, 1);
    auto const log = admin().get_audit_log().get();
    EXPECT_TRUE(std::ranges::any_of(log.entries, [](AuditLogEntry const& entry) {
        return entry.tinker_path.value_or("").ends_with("/weights/a");
    }));
}

}  // namespace
}  // namespace tinkxx::local
