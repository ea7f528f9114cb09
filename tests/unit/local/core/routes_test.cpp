// The table of endpoints: whole, documented, and each of them answers.
#include "local/core/routes.hpp"
#include "unit/local/raw_fixture.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <set>
#include <sstream>

namespace tinkxx::local {
namespace {

using ::testing::HasSubstr;

// Protocol §2.1, in its order.
constexpr std::string_view protocol[] = {
    "POST /api/v1/client/config",
    "POST /api/v1/client/dynamic_config",
    "POST /api/v1/auth/token",
    "GET /api/v1/healthz",
    "GET /api/v1/get_server_capabilities",
    "POST /api/v1/create_session",
    "POST /api/v1/session_heartbeat",
    "POST /api/v1/create_sampling_session",
    "POST /api/v1/asample",
    "POST /api/v1/retrieve_future",
    "POST /api/v1/create_model",
    "POST /api/v1/unload_model",
    "POST /api/v1/get_info",
    "POST /api/v1/forward_backward",
    "POST /api/v1/forward",
    "POST /api/v1/optim_step",
    "POST /api/v1/save_weights",
    "POST /api/v1/load_weights",
    "POST /api/v1/save_weights_for_sampler",
    "POST /api/v1/weights_info",
    "GET /api/v1/samplers/S:sample:0",
    "GET /api/v1/training_runs",
    "GET /api/v1/training_runs/S:train:0",
    "GET /api/v1/training_runs/S%3Atrain%3A0",
    "GET /api/v1/training_runs/S:train:0/checkpoints",
    "DELETE /api/v1/training_runs/S:train:0/checkpoints/weights/a",
    "GET /api/v1/training_runs/S:train:0/checkpoints/sampler_weights/a/archive",
    "GET /api/v1/training_runs/S:train:0/checkpoints/a/archive",
    "POST /api/v1/training_runs/S:train:0/checkpoints/weights/a/publish",
    "DELETE /api/v1/training_runs/S:train:0/checkpoints/weights/a/publish",
    "PUT /api/v1/training_runs/S:train:0/checkpoints/weights/a/ttl",
    "GET /api/v1/checkpoints",
    "GET /api/v1/sessions",
    "GET /api/v1/sessions/S",
    "PUT /api/v1/sessions/S/project",
    "GET /api/v1/sessions/S/trace_export",
    "GET /api/v1/audit",
    "GET /api/v1/billing/usage/events",
    "POST /api/v1/sessions/S/finish",
    "POST /api/v1/join_sampling_session",
    "POST /api/v1/retrieve_futures",
    "POST /api/v1/cancel_future",
    "POST /api/v1/create_custom_loss",
    "POST /api/v1/save_weights_external",
    "GET /api/v1/training_runs/S:train:0/checkpoints/external_weights/a/external_weights_urls",
    "POST /api/v1/copy_weights",
    "POST /api/v1/sessions/search",
    "GET /api/v1/billing/usage/checkpoints/current",
    "GET /api/v1/auth/apikey/me",
    "DELETE /api/v1/auth/apikey/me",
    "POST /api/v1/telemetry",
    "POST /api/v1/stream_sample",
};

TEST(Routes, LeadEveryRequestOfTheProtocolSomewhere) {
    std::set<Route const*> met;
    for (auto const request : protocol) {
        auto const blank = request.find(' ');
        auto const match = match_route(request.substr(0, blank), request.substr(blank + 1));
        ASSERT_NE(match.route, nullptr) << request;
        met.insert(match.route);
    }
    // What is left are the few that only this server has.
    EXPECT_EQ(routes().size() - met.size(), 4U);
}

TEST(Routes, FindTheNamesInAPath) {
    auto const match =
        match_route("GET", "/api/v1/training_runs/S%3Atrain%3A0/checkpoints/weights/a%20b/archive");
    EXPECT_THAT(match.names, ::testing::ElementsAre("S:train:0", "weights/a b"));
    EXPECT_TRUE(match_route("GET", "/api/v1/create_session").other_method);
    EXPECT_EQ(match_route("GET", "/api/v2/healthz").route, nullptr);
}

TEST(Routes, AreDocumented) {
    std::string expected;
    for (auto const& route : routes()) {
        expected += "| " + std::string{route.method} + " | `" + std::string{route.path} + "` | " +
                    (route.service == Service::served ? "served" : "refused") + " | " +
                    std::string{route.note} + " |\n";
    }
    std::ifstream in{TINKXX_SOURCE_DIR "/docs/local.md"};
    std::stringstream text;
    text << in.rdbuf();
    EXPECT_THAT(text.str(), HasSubstr("|---|---|---|---|\n" + expected));
}

class EveryRoute : public RawTest {};

// Nothing that comes without a body that fits ends in a crash, silence or an error of the server.
TEST_F(EveryRoute, AnswersWithAReasonWhateverItIsSent) {
    for (auto const& route : routes()) {
        for (auto const* body : {"", "{}", "[]", "null", "{\"session_id\": 7}", "\xff"}) {
            std::string path{route.path};
            for (auto const& [name, value] : {std::pair{"{run}", "R"},
                                              {"{session}", "S"},
                                              {"{sampler}", "A"},
                                              {"{ckpt}", "weights/w"},
                                              {"{file}", "f"}}) {
                if (auto const at = path.find(name); at != std::string::npos) {
                    path.replace(at, std::string_view{name}.size(), value);
                }
            }
            auto const response = call(std::string{route.method}, path, body);
            EXPECT_LT(response.status, 500) << route.method << ' ' << path << ' ' << body;
            if (response.status >= 400) {
                EXPECT_FALSE(detail(response).empty()) << path;
                EXPECT_TRUE(response.headers.contains("Content-Length")) << path;
            }
            if (route.service == Service::not_served &&
                route.path.find("trace") == std::string::npos) {
                EXPECT_EQ(response.status, 404);
                EXPECT_THAT(detail(response), HasSubstr("not served by a local server"));
            }
        }
    }
    EXPECT_EQ(call("GET", "/nowhere").status, 404);
    EXPECT_EQ(call("DELETE", "/api/v1/healthz").status, 405);
}

}  // namespace
}  // namespace tinkxx::local
