// Who may talk to a server, what it takes on, and the faults it makes up.
#include "local/api/access.hpp"
#include "local/core/chaos.hpp"
#include "unit/local/raw_fixture.hpp"

#include "wire/server/requests.hpp"

#include <zstd.h>

#include <gmock/gmock.h>

namespace tinkxx::local {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::optional<int> refused(AccessRules const& rules, Headers headers, bool needs_key = true) {
    auto const no = forbidden(rules, ServerRequest{.headers = std::move(headers)}, needs_key);
    return no ? std::optional{no->status} : std::nullopt;
}

TEST(Access, IsForThisMachineUnlessToldOtherwise) {
    for (auto const* host : {"localhost", "localhost:8080", "127.0.0.1:1", "127.8.9.1", "[::1]:80",
                             "LOCALHOST", "a.localhost", "192.168.0.7:8080", "[fe80::1]"}) {
        EXPECT_EQ(refused({}, {{"Host", host}}), std::nullopt) << host;
    }
    for (auto const* host :
         {"evil.example", "127.evil.example", "1.2.3", "localhost.evil", "[evil]"}) {
        EXPECT_EQ(refused({}, {{"Host", host}}), 403) << host;
    }
    EXPECT_EQ(refused({.hosts = {"Box"}}, {{"Host", "box:8080"}}), std::nullopt);
    // With a key, any name may lead here.
    EXPECT_EQ(refused({.api_key = "k"}, {{"Host", "box"}, {"X-API-Key", "k"}}), std::nullopt);
}

TEST(Access, IsNotForPagesFromElsewhere) {
    EXPECT_EQ(refused({}, {{"Host", "localhost:80"}, {"Origin", "http://localhost:80"}}),
              std::nullopt);
    for (auto const* origin : {"http://localhost:81", "https://evil.example", "null"}) {
        EXPECT_EQ(refused({}, {{"Host", "localhost:80"}, {"Origin", origin}}), 403) << origin;
    }
    for (auto const* site : {"cross-site", "same-site"}) {
        EXPECT_EQ(refused({}, {{"Host", "localhost"}, {"Sec-Fetch-Site", site}}), 403) << site;
    }
}

TEST(Access, WantsTheKeyIfThereIsOne) {
    AccessRules const rules{.api_key = "tml-secret"};
    EXPECT_EQ(refused(rules, {}), 401);
    EXPECT_EQ(refused(rules, {{"X-API-Key", "tml-secreT"}}), 401);
    EXPECT_EQ(refused(rules, {{"X-API-Key", "tml-secret"}}), std::nullopt);
    EXPECT_EQ(refused(rules, {{"Authorization", "Bearer tml-secret"}}), std::nullopt);
    EXPECT_EQ(refused(rules, {}, false), std::nullopt);
    EXPECT_TRUE(equal_in_constant_time("", ""));
    EXPECT_FALSE(equal_in_constant_time("a", "ab"));
}

TEST(ChaosPlan, IsReadFromText) {
    auto const plan = parse_chaos("429:0.05,500:0.01,delay:50ms..2s,drop:0.01").value();
    EXPECT_EQ(plan.statuses, (std::map<int, double>{{429, 0.05}, {500, 0.01}}));
    EXPECT_EQ(plan.shortest, 50ms);
    EXPECT_EQ(plan.longest, 2s);
    EXPECT_EQ(plan.drop, 0.01);
    EXPECT_EQ(parse_chaos("").value(), ChaosPlan{});
    EXPECT_EQ(parse_chaos("delay:1.5m").value().longest, 90s);
    for (auto const* wrong :
         {"429", "429:", "429:2", "429:-1", "200:0.1", "500:0.1,500:0.1", "delay:2s..1s", "delay:5",
          "delay:2h", "drop:x", "drop:0.1,drop:0.1", "429:0.6,500:0.6", "drop:0.1,", "noise:0.1",
          "429:nan", "delay:1s..", ",", "503:1e-1"}) {
        auto const bad = parse_chaos(wrong);
        ASSERT_FALSE(bad) << wrong;
        EXPECT_THAT(bad.error().what(), HasSubstr("429:0.05,500:0.01")) << wrong;
    }
}

TEST(ChaosPlan, IsCarriedOutBySeed) {
    auto const plan = parse_chaos("429:0.25,drop:0.25,delay:1ms..3ms").value();
    Chaos one{plan, 7};
    Chaos two{plan, 7};
    int statuses = 0;
    int drops = 0;
    for (int i = 0; i < 4000; ++i) {
        auto const fault = one.next();
        auto const same = two.next();
        EXPECT_EQ(fault.delay, same.delay);
        EXPECT_EQ(fault.status, same.status);
        EXPECT_EQ(fault.drop, same.drop);
        EXPECT_GE(fault.delay, 1ms);
        EXPECT_LE(fault.delay, 3ms);
        if (fault.status) ++statuses;
        if (fault.drop != Fault::Drop::no) ++drops;
    }
    EXPECT_NEAR(statuses, 1000, 120);
    EXPECT_NEAR(drops, 1000, 120);
}

class LimitsOfTheServer : public RawTest {};

TEST_F(LimitsOfTheServer, RefuseABodyThatIsTooLarge) {
    server_options.limits.request_bytes = 1000;
    EXPECT_EQ(post("create_session", "{}").status, 200);
    auto const large = post("create_session", std::string(1001, ' '));
    EXPECT_EQ(large.status, 413);
    EXPECT_THAT(detail(large), HasSubstr("the limit is 1000"));
    // Nor does it grow beyond that when it is decompressed.
    std::string const blanks(100'000, ' ');
    std::string packed(ZSTD_compressBound(blanks.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), blanks.data(), blanks.size(), 3));
    auto const bomb = call("POST", "create_session", packed, {{"Content-Encoding", "zstd"}});
    EXPECT_EQ(bomb.status, 400);
    EXPECT_THAT(detail(bomb), HasSubstr("exceeds the limit"));
    auto const other = call("POST", "create_session", "{}", {{"Content-Encoding", "br"}});
    EXPECT_THAT(detail(other), HasSubstr("send it as zstd or as it is"));
}

TEST_F(LimitsOfTheServer, RefuseAPromptThatIsTooLong) {
    server_options.limits.prompt_tokens = 1;
    auto const session = new_session();
    auto const sampler = new_sampler(session);
    EXPECT_THAT(detail(post("asample", sample_body(sampler, 0))), HasSubstr("the limit"));
    auto const model = new_model(session);
    auto const pass =
        result(text(json(post("forward_backward", pass_body(model, 1))), "request_id"));
    EXPECT_THAT(text(pass, "error"), HasSubstr("the limit is 1"));
}

TEST_F(LimitsOfTheServer, ReadAWholeZstdFrameAndNothingLess) {
    std::string const body = R"({"tags":["a"]})";
    std::string packed(ZSTD_compressBound(body.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), body.data(), body.size(), 3));
    EXPECT_EQ(wire::server::decode_body("x", packed, "zstd", 1000).value(), body);
    for (std::size_t cut = 0; cut < packed.size(); ++cut) {
        EXPECT_FALSE(wire::server::decode_body("x", packed.substr(0, cut), "zstd", 1000)) << cut;
    }
}

class KeyedServer : public RawTest {
protected:
    KeyedServer() { server_options.api_key = "tml-other"; }
};

TEST_F(KeyedServer, AnswersNobodyWithoutItsKey) {
    EXPECT_EQ(call("GET", "healthz").status, 200);
    EXPECT_EQ(call("GET", "sessions").status, 401);
    EXPECT_EQ(call("GET", "sessions", {}, {{"X-API-Key", "tml-other"}}).status, 200);
}

class ChaoticServer : public LocalTest {};

TEST_F(ChaoticServer, TrainsAsAQuietOneDoes) {
    auto const losses = [this](std::string const& chaos) {
        restart();
        server_options.chaos = chaos;
        server_options.chaos_seed = 3;
        server_options.home = home.path() / (chaos.empty() ? "quiet" : "chaos");
        auto const trainer = service()
                                 .create_lora_training_client(
                                     "test/bytes", TrainingOptions{.lora = {.rank = 2, .seed = 5}})
                                 .get();
        std::vector<double> made;
        for (int i = 0; i < 6; ++i) {
            auto grads = trainer.forward_backward({text_datum("abcdef")}, LossFn::cross_entropy);
            auto step = trainer.optim_step({.learning_rate = 0.05});
            made.push_back(grads.get().metrics.at("loss:sum"));
            step.get();
        }
        return made;
    };
    auto const quiet = losses("");
    // Each step was applied once and in order, whatever was lost on the way.
    EXPECT_EQ(losses("429:0.1,500:0.1,503:0.05,delay:1ms..3s,drop:0.15"), quiet);
}

}  // namespace
}  // namespace tinkxx::local
