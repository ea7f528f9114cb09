#include <tinkxx/admin_client.hpp>
#include <tinkxx/rest_client.hpp>
#include <tinkxx/service_client.hpp>

#include "support/raw_tinker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx {
namespace {

using namespace std::chrono_literals;
using support::json_reply;
using support::RawTinker;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Reply;
using testing::SentRequest;
using ::testing::SizeIs;

constexpr auto run_json =
    R"({"training_run_id":"r","base_model":"m","model_owner":"o","is_lora":true,)"
    R"("last_request_time":"2026-01-02T03:04:05Z"})";

class Rest : public ::testing::Test {
protected:
    Rest() {
        tinker.on_other = [this](SentRequest const& request) -> std::optional<Reply> {
            auto const found = answers.find(request.path);
            if (found == answers.end()) return std::nullopt;
            asked.push_back(request);
            auto& left = found->second;
            auto reply = left.front();
            if (left.size() > 1) left.erase(left.begin());
            return reply;
        };
    }
    /// Answers at that path, one after the other; the last one for ever.
    void answer(std::string const& path, std::vector<Reply> replies) {
        answers["/api/v1/" + path] = std::move(replies);
    }
    void answer(std::string const& path, std::string const& json) {
        answer(path, std::vector{json_reply(json)});
    }
    static std::string line_of(SentRequest const& request) {
        return request.method + ' ' + request.path +
               (request.query.empty() ? "" : '?' + request.query);
    }

    RawTinker tinker{};
    RestClient rest{tinker.options()};
    std::map<std::string, std::vector<Reply>> answers{};
    std::vector<SentRequest> asked{};
};

TEST_F(Rest, NeedsAUrlAndAKeyAndNoSession) {  // R-CONF-44, R-REST-00
    answer("training_runs/r", run_json);
    auto const run = rest.get_training_run("r").get();
    EXPECT_EQ(run.base_model, "m");
    EXPECT_EQ(tinker.count("/api/v1/create_session"), 0U);
    EXPECT_EQ(tinker.count("/api/v1/session_heartbeat"), 0U);
    EXPECT_EQ(asked.at(0).header("X-API-Key"), "tml-test-key");
}

TEST_F(Rest, SaysWhichMethodWasCalled) {  // R-REST-00, R-REST-02, R-REST-03
    AdminClient const admin{tinker.options()};
    CheckpointRef const by_path = "tinker://r/weights/a";
    CheckpointRef const by_id = {"r", "weights/a"};
    auto const void_calls = std::vector<std::function<Future<void>()>>{
        [&] { return rest.delete_checkpoint(by_path); },
        [&] { return rest.delete_checkpoint(by_id); },
        [&] { return rest.publish_checkpoint(by_path); },
        [&] { return rest.unpublish_checkpoint(by_id); },
        [&] { return rest.set_checkpoint_ttl(by_path, 2h); },
        [&] { return rest.set_checkpoint_ttl(by_path, std::nullopt); },
        [&] { return rest.assign_session_project("s", "p"); },
    };
    auto const run = "training_runs/r/checkpoints/weights/a";
    for (std::string const end : {"", "/publish", "/ttl"}) {
        answer(run + end, {Reply{.status = 204}});
    }
    answer("sessions/s/project", {Reply{.status = 204}});
    for (auto const& call : void_calls) call().get();
    std::vector<std::string> told;
    for (auto const& request : asked) {
        told.push_back(line_of(request) + ' ' + request.header("x-sdk-method") + ' ' +
                       request.body);
        EXPECT_EQ(request.header("x-sdk-version"), "0.36.0");
        EXPECT_NE(request.header("X-Idempotency-Key"), "");
    }
    std::string const base = "/api/v1/training_runs/r/checkpoints/weights/a";
    EXPECT_THAT(
        told, ElementsAre(
                  "DELETE " + base + " delete_checkpoint_from_tinker_path ",
                  "DELETE " + base + " delete_checkpoint ",
                  "POST " + base + "/publish publish_checkpoint_from_tinker_path ",
                  "DELETE " + base + "/publish unpublish_checkpoint_from_tinker_path ",
                  "PUT " + base + "/ttl set_checkpoint_ttl_from_tinker_path {\"ttl_seconds\":7200}",
                  "PUT " + base + "/ttl set_checkpoint_ttl_from_tinker_path {\"ttl_seconds\":null}",
                  "PUT /api/v1/sessions/s/project assign_session_project "
                  "{\"project_id\":\"p\"}"));

    asked.clear();
    answer("audit", R"({"entries":[]})");
    answer("billing/usage/events", R"({"data":[]})");
    answer("billing/usage/checkpoints/current", R"({"data":[]})");
    AuditQuery query;
    query.events = AuditEvents::teams;
    query.day = std::chrono::year{2026} / 1 / 2;
    (void)admin.get_audit_log(query).get();
    (void)admin
        .get_billing_usage(*parse_timestamp("2026-07-13T02:00:00+02:00"),
                           *parse_timestamp("2026-07-14T00:00:00Z"))
        .get();
    (void)admin.get_current_checkpoint_storage_usage("p").get();
    told.clear();
    for (auto const& request : asked) {
        told.push_back(line_of(request) + ' ' + request.header("x-sdk-method"));
    }
    EXPECT_THAT(told,
                ElementsAre("GET /api/v1/audit?event_type=teams&day=2026-01-02 get_audit_log",
                            "GET /api/v1/billing/usage/events?starting_on=2026-07-13T02%3A00%3A00"
                            "%2B02%3A00&ending_before=2026-07-14T00%3A00%3A00Z get_billing_usage",
                            "GET /api/v1/billing/usage/checkpoints/current?project_id=p "
                            "get_current_checkpoint_storage_usage"));
}

TEST_F(Rest, TellsARunByItsIdOrByAPathOfIt) {  // R-REST-00, R-REST-02
    answer("training_runs/r", run_json);
    (void)rest.get_training_run("r", AccessScope::accessible).get();
    (void)rest.get_training_run("tinker://r/weights/a").get();
    EXPECT_EQ(line_of(asked.at(0)), "GET /api/v1/training_runs/r?access_scope=accessible");
    EXPECT_EQ(asked.at(0).header("x-sdk-method"), "get_training_run");
    EXPECT_EQ(line_of(asked.at(1)), "GET /api/v1/training_runs/r?access_scope=owned");
    EXPECT_EQ(asked.at(1).header("x-sdk-method"), "get_training_run_by_tinker_path");
}

TEST_F(Rest, RefusesWhatCannotBeAnIdBeforeAnythingIsSent) {  // R-REST-01
    std::vector<Future<void>> refused;
    for (CheckpointRef const& wrong :
         {CheckpointRef{"tinker://r/other/a"}, CheckpointRef{"tinker://../weights/a"},
          CheckpointRef{"tinker://r/weights/.."}, CheckpointRef{"r", ""},
          CheckpointRef{"", "weights/a"}, CheckpointRef{"a/b", "weights/a"},
          CheckpointRef{"r", "weights/a?x=1"}, CheckpointRef{"r", "../../sessions"},
          CheckpointRef{"r", "a/b/c"}}) {
        refused.push_back(rest.delete_checkpoint(wrong));
    }
    for (auto& each : refused) {
        auto const result = each.result();
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().kind(), ErrorKind::validation);
        EXPECT_THAT(result.error().what(), HasSubstr("delete_checkpoint: "));
    }
    EXPECT_EQ(rest.get_session("").result().error().field(), "session_id");
    EXPECT_EQ(rest.get_sampler("a/b").result().error().field(), "sampler_id");
    EXPECT_EQ(rest.list_checkpoints("#").result().error().field(), "training_run_id");
    EXPECT_EQ(rest.list_sessions({.limit = 0}).result().error().field(), "limit");
    EXPECT_EQ(rest.list_user_checkpoints({.offset = -1}).result().error().field(), "offset");
    EXPECT_EQ(rest.set_checkpoint_ttl("tinker://r/weights/a", 0s).result().error().field(),
              "ttl_seconds");
    EXPECT_EQ(tinker.transport->sent_count(), 0U);
}

// Lists -------------------------------------------------------------------------------------------

/// The number behind a name in a query.
std::size_t number_in(std::string const& query, std::string const& name) {
    return std::stoul(query.substr(query.find(name + '=') + name.size() + 1));
}

class Lists : public Rest {
protected:
    /// A service that has so many checkpoints, and gives at most so many at once.
    void serve(std::size_t count, std::size_t at_once, std::string const& more = "") {
        tinker.on_other = [=, this](SentRequest const& request) -> std::optional<Reply> {
            if (request.path != "/api/v1/checkpoints") return std::nullopt;
            ++pages;
            auto const offset = number_in(request.query, "offset");
            auto const limit = std::min(number_in(request.query, "limit"), at_once);
            std::string items;
            for (auto i = offset; i < std::min(count, offset + limit); ++i) {
                auto const name = "c" + std::to_string(i);
                items += (items.empty() ? "" : ",") + std::string{R"({"checkpoint_id":"weights/)"} +
                         name + R"(","checkpoint_type":"training","time":"2026-01-02T03:04:05Z",)" +
                         R"("user_metadata":{"more":")" + more +
                         R"("},"tinker_path":"tinker://r/)" + "weights/" + name + "\"}";
            }
            return json_reply("{\"checkpoints\":[" + items + "],\"cursor\":{\"offset\":" +
                              std::to_string(offset) + ",\"limit\":" + std::to_string(limit) +
                              ",\"total_count\":" + std::to_string(count) + "}}");
        };
    }
    std::size_t pages{0};
};

TEST_F(Lists, AreFetchedPageByPageInARange) {  // R-REST-00
    serve(250, 1000);
    std::size_t count = 0;
    for (auto const& checkpoint : rest.user_checkpoints()) {
        EXPECT_EQ(checkpoint.checkpoint_id, "weights/c" + std::to_string(count));
        EXPECT_EQ(pages, count / 100 + 1) << "fetched before it was needed";
        ++count;
    }
    EXPECT_EQ(count, 250U);
    EXPECT_EQ(pages, 3U);
}

TEST_F(Lists, FollowAServerThatGivesFewerAtOnce) {  // R-REST-00
    serve(25, 10);
    std::size_t count = 0;
    for (auto const& checkpoint : rest.user_checkpoints({.offset = 3})) {
        EXPECT_EQ(checkpoint.checkpoint_id, "weights/c" + std::to_string(count + 3));
        ++count;
    }
    EXPECT_EQ(count, 22U);
}

TEST_F(Lists, OfTenThousandTakeNoMoreMemoryThanAPage) {  // R-REST-00
    serve(10'000, 1000, std::string(1000, 'x'));
    std::size_t count = 0;
    std::size_t least = 0;
    std::size_t most = 0;
    for (auto const& checkpoint : rest.user_checkpoints()) {
        (void)checkpoint;
        // Past the first pages, so that what is kept for later is there.
        if (++count < 500) continue;
        auto const used = ::mallinfo2().uordblks;
        if (count == 500) least = most = used;
        least = std::min(least, used);
        most = std::max(most, used);
    }
    EXPECT_EQ(count, 10'000U);
    // All of them would be more than 12 MB; the fake service's own log of requests grows.
    EXPECT_LT(most - least, std::size_t{4} << 20U);
}

TEST_F(Lists, GivePagesThatAreAwaited) {  // R-REST-00
    serve(150, 1000);
    auto checkpoints = rest.user_checkpoints();
    EXPECT_THAT(checkpoints.next().get(), SizeIs(100));
    EXPECT_THAT(checkpoints.next().get(), SizeIs(50));
    EXPECT_THAT(checkpoints.next().get(), IsEmpty());
    EXPECT_EQ(pages, 2U);
}

TEST_F(Lists, AskForAPageAgainThatFailed) {  // R-REST-00
    serve(150, 1000);
    auto working = tinker.on_other;
    auto checkpoints = rest.user_checkpoints();
    EXPECT_THAT(checkpoints.next().get(), SizeIs(100));
    tinker.on_other = [](SentRequest const&) { return json_reply("{}", 403); };
    EXPECT_EQ(checkpoints.next().result().error().http_status(), 403);
    tinker.on_other = working;
    EXPECT_THAT(checkpoints.next().get(), SizeIs(50));
}

TEST_F(Rest, ListsSessionsUntilAPageIsEmpty) {  // R-REST-00
    answer("sessions", {json_reply(R"({"sessions":["a","b"]})"),
                        json_reply(R"({"sessions":["c"]})"), json_reply(R"({"sessions":[]})")});
    std::vector<std::string> found;
    for (auto const& id : rest.sessions()) found.push_back(id);
    EXPECT_THAT(found, ElementsAre("a", "b", "c"));
    std::vector<std::string> queries;
    for (auto const& request : asked) queries.push_back(request.query);
    EXPECT_THAT(queries, ElementsAre("limit=100&offset=0&access_scope=owned",
                                     "limit=100&offset=2&access_scope=owned",
                                     "limit=100&offset=3&access_scope=owned"));
}

TEST_F(Rest, SearchesOnWhereTheServerSays) {  // R-REST-04
    auto const page = [](std::string const& id, std::string const& cursor) {
        return json_reply(R"({"sessions":[{"session_id":")" + id +
                          R"(","owner":"o","project_id":"p","created_at":"2026-01-02T03:04:05Z",)" +
                          R"("checkpoints_count":0}],"next_cursor":)" + cursor + "}");
    };
    answer("sessions/search",
           {page("a", R"({"last_created_at":"2026-01-02T03:04:05.100Z","last_session_id":"a"})"),
            page("b", "null")});
    SessionSearch search;
    search.display_name = "n";
    std::vector<std::string> found;
    for (auto const& session : rest.found_sessions(search)) found.push_back(session.session_id);
    EXPECT_THAT(found, ElementsAre("a", "b"));
    // Given back as it came, to the last zero.
    EXPECT_THAT(asked.at(1).body,
                HasSubstr(R"("cursor":{"last_created_at":"2026-01-02T03:04:05.100Z",)"));
    EXPECT_THAT(asked.at(1).body, HasSubstr(R"("display_name":"n")"));
    for (auto const limit : {0, 201}) {
        search.limit = limit;
        EXPECT_EQ(rest.search_sessions(search).result().error().field(), "limit");
    }
}

// Waiting -----------------------------------------------------------------------------------------

Reply redirect() {
    return {.status = 302,
            .headers = {{"Location", "https://download.test/a.tar"},
                        {"Expires", "Wed, 27 May 2026 20:00:00 GMT"}}};
}

TEST_F(Rest, WaitsForAnArchiveThatIsBeingBuilt) {  // R-REST-10
    auto const path = "training_runs/r/checkpoints/sampler_weights/a/archive";
    answer(path, {json_reply("{}", 503), json_reply("{}", 503), redirect()});
    auto const url = rest.get_checkpoint_archive_url("tinker://r/sampler_weights/a").get();
    EXPECT_EQ(url.url, "https://download.test/a.tar");
    EXPECT_EQ(to_string(url.expires), "2026-05-27T20:00:00Z");
    ASSERT_THAT(asked, SizeIs(3));
    EXPECT_EQ(asked[1].at - asked[0].at, 30s);
    EXPECT_EQ(asked[2].at - asked[1].at, 30s);
    EXPECT_EQ(asked[0].header("Accept"), "application/json");
    EXPECT_EQ(asked[0].redirects, Redirects::none);
    EXPECT_EQ(asked[0].header("x-sdk-method"), "get_checkpoint_archive_url_from_tinker_path");
    EXPECT_EQ(tinker.logged("warning: get_checkpoint_archive_url: the server may have to build"),
              1U);
    EXPECT_EQ(tinker.logged("still running"), 0U);
}

TEST_F(Rest, GivesUpOnAnArchiveAfterSixTries) {  // R-REST-10
    auto slow = json_reply("{}", 503);
    slow.delay = 50s;
    answer("training_runs/r/checkpoints/sampler_weights/a/archive", {slow});
    auto const url = rest.get_checkpoint_archive_url({"r", "sampler_weights/a"}).result();
    ASSERT_FALSE(url);
    EXPECT_EQ(url.error().http_status(), 503);
    EXPECT_THAT(url.error().what(), HasSubstr("after 6 tries"));
    EXPECT_THAT(asked, SizeIs(6));
    // It took 6 · 50 s and 5 · 30 s: lines at 180, 210, …, 450 s.
    EXPECT_EQ(tinker.logged("still running after 180 s"), 1U);
    EXPECT_GE(tinker.logged("still running"), 9U);
}

TEST_F(Rest, SaysWhatToDoIfThereAreNoArchives) {  // R-REST-11
    for (auto const status : {403, 404, 410}) {
        answer("training_runs/r/checkpoints/sampler_weights/a/archive",
               {json_reply(R"({"detail":"no"})", status)});
        auto const url = rest.get_checkpoint_archive_url("tinker://r/sampler_weights/a").result();
        ASSERT_FALSE(url);
        EXPECT_EQ(url.error().http_status(), status);
        EXPECT_THAT(url.error().what(), HasSubstr("save_weights_external"));
    }
}

TEST_F(Rest, NeedsALocationAndMakesUpATime) {  // R-REST-10
    answer("training_runs/r/checkpoints/sampler_weights/a/archive",
           {Reply{.status = 302}, Reply{.status = 302, .headers = {{"Location", "https://x/a"}}},
            json_reply(R"({"url":"https://x/b","expires":"2026-05-27T20:00:00Z"})")});
    auto const ask = [this] {
        return rest.get_checkpoint_archive_url("tinker://r/sampler_weights/a").result();
    };
    auto const none = ask();
    ASSERT_FALSE(none);
    EXPECT_THAT(none.error().what(), HasSubstr("without a Location"));
    auto const now = std::chrono::floor<std::chrono::microseconds>(tinker.clock->wall());
    EXPECT_EQ(ask()->expires.time - now, 15min);
    EXPECT_EQ(ask()->url, "https://x/b");
}

TEST_F(Rest, GivesLinksToExternalWeightsOnly) {  // R-REST-12
    auto const wrong = rest.get_external_weights_urls("tinker://r/weights/a").result();
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().kind(), ErrorKind::validation);
    EXPECT_THAT(wrong.error().what(), HasSubstr("tinker://r/weights/a"));
    EXPECT_EQ(tinker.transport->sent_count(), 0U);
    answer("training_runs/r/checkpoints/external_weights/e/external_weights_urls",
           R"({"urls":{"a/b":"https://x/1"},"expires":"2026-05-27T20:00:00Z"})");
    auto const links = rest.get_external_weights_urls({"r", "external_weights/e"}).get();
    EXPECT_EQ(links.urls.at("a/b"), "https://x/1");
}

TEST_F(Rest, AsksForATraceUntilItIsReady) {  // R-REST-00
    answer("sessions/s/trace_export",
           {json_reply(R"({"status":"pending"})"), json_reply(R"({"status":"pending"})"),
            json_reply(R"({"status":"ready","url":"https://x/t"})")});
    EXPECT_EQ(rest.export_session_trace("s").get(), "https://x/t");
    EXPECT_EQ(asked.at(2).at - asked.at(0).at, 10s);
    EXPECT_EQ(tinker.logged("may take a while"), 1U);
    answer("sessions/s/trace_export", R"({"status":"failed","error":"too big"})");
    auto const failed = rest.export_session_trace("s").result();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().kind(), ErrorKind::request_failed);
    EXPECT_THAT(failed.error().what(), HasSubstr("session s: too big"));
}

TEST_F(Rest, DoesNotWaitForLongToPublishWhatIsPublic) {  // R-REST-00
    answer("training_runs/r/checkpoints/weights/a/publish",
           {json_reply(R"({"detail":"already public"})", 409)});
    auto const done = rest.publish_checkpoint("tinker://r/weights/a").result();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().http_status(), 409);
    EXPECT_THAT(asked, SizeIs(4));
    EXPECT_LT(asked.back().at - asked.front().at, 5s);
}

// The client --------------------------------------------------------------------------------------

TEST_F(Rest, HasADeadlineAndTellsWhereItStands) {  // R-REST-00
    answer("training_runs/r", {Reply{.status = 0, .delay = 1h, .failure = Failure{}}});
    tinker.clock->set_auto_advance(false);
    auto pending = rest.with({.deadline = 20s}).get_training_run("r");
    while (tinker.clock->run_ready()) {
    }
    auto status = rest.status();
    while (tinker.clock->run_ready()) {
    }
    auto const calls = status.get().pending;
    ASSERT_THAT(calls, SizeIs(1));
    EXPECT_EQ(calls[0].operation, "get_training_run");
    EXPECT_EQ(calls[0].stage, Stage::submitting);
    tinker.clock->advance(21s);
    auto const late = pending.result();
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().kind(), ErrorKind::timeout);
    EXPECT_THAT(late.error().what(), HasSubstr("get_training_run"));
    EXPECT_EQ(rest.with({.deadline = -1s}).get_training_run("r").result().error().field(),
              "CallOptions::deadline");
}

TEST_F(Rest, IsClosedByItself) {  // R-CONF-44, R-CONF-45
    answer("training_runs/r", run_json);
    (void)rest.get_training_run("r").get();
    rest.close().get();
    EXPECT_EQ(rest.get_training_run("r").result().error().kind(), ErrorKind::closed);
}

TEST_F(Rest, IsClosedByTheServiceClientThatItWasMadeFrom) {  // R-CONF-44, R-CONF-45
    answer("training_runs/r", run_json);
    ServiceClient const service{tinker.options()};
    auto const made = service.create_rest_client();
    (void)made.get_training_run("r").get();
    made.close().get();
    (void)made.get_training_run("r").get();
    EXPECT_EQ(tinker.count("/api/v1/create_session"), 0U);
    service.close().get();
    EXPECT_EQ(made.get_training_run("r").result().error().kind(), ErrorKind::closed);
    EXPECT_EQ(service.create_admin_client().get_audit_log().result().error().kind(),
              ErrorKind::closed);
}

TEST_F(Rest, CopiesWeightsAndTellsWhoAsks) {  // R-REST-00
    CopyWeightsOptions options;
    options.destination_project = "p";
    EXPECT_EQ(rest.copy_weights("tinker://r/weights/a", options).get(),
              "tinker://copy:train:0/weights/a");
    EXPECT_EQ(rest.health().get(), "ok");
    EXPECT_THAT(rest.get_server_capabilities().get().supported_models, SizeIs(1));
    EXPECT_EQ(rest.whoami().result().error().kind(), ErrorKind::validation);
}

std::string text_of_file(std::string const& name) {
    std::ifstream file{TINKXX_SOURCE_DIR "/" + name};
    EXPECT_TRUE(file) << name;
    return {std::istreambuf_iterator<char>{file}, {}};
}

TEST(RestGuide, NamesEveryFieldOfEveryAnswerAndEveryCall) {  // R-DOC-01
    auto const guide = text_of_file("docs/rest.md");
    std::regex const member{R"(\n    [\w:<>, ]+ (\w+)\{.*\};)"};
    for (std::string const name :
         {"training_run", "checkpoint", "session", "billing", "download", "timestamp"}) {
        auto const header = text_of_file("include/tinkxx/types/" + name + ".hpp");
        std::size_t found = 0;
        for (std::sregex_iterator at{header.begin(), header.end(), member}, end; at != end; ++at) {
            if (at->str(1).ends_with('_')) continue;  // private
            EXPECT_THAT(guide, HasSubstr('`' + at->str(1) + '`')) << name << ".hpp";
            ++found;
        }
        EXPECT_GE(found, 2U) << name;
    }
    std::regex const call{R"(\n    \[\[nodiscard\]\] (?:Future|Listing)<[\w:]+> (\w+)\()"};
    for (std::string const name : {"rest_client", "admin_client"}) {
        auto const header = text_of_file("include/tinkxx/" + name + ".hpp");
        for (std::sregex_iterator at{header.begin(), header.end(), call}, end; at != end; ++at) {
            EXPECT_TRUE(std::regex_search(guide, std::regex{"\\b" + at->str(1) + "\\b"}))
                << at->str(1);
        }
    }
}

}  // namespace
}  // namespace tinkxx
