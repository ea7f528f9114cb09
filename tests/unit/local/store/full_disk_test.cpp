// A disk that is full: an answer says what is true after a restart, for every endpoint that writes.
#include "unit/local/raw_fixture.hpp"
#include "unit/local/store/faulty_disk.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <functional>

namespace tinkxx::local {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

class FullDisk : public RawTest {
public:
    FullDisk() { (void)FaultyDisk::instance(); }
    ~FullDisk() override { FaultyDisk::instance().heal(); }

    // What cases are made of.
    using RawTest::call;
    using RawTest::json;
    using RawTest::new_model;
    using RawTest::new_sampler;
    using RawTest::post;
    using RawTest::result;
    using RawTest::retrieve;
    using RawTest::sample_body;
    using RawTest::save_body;
    using RawTest::text;

    void prepare() {
        session = new_session();
        model = new_model(session);
        sampler = new_sampler(session);
        (void)finished(post("save_weights", save_body(model, 1, "kept")));
        run();
    }
    /// Whether what was promised has come true: a result that is no error.
    bool finished(HttpResponse const& promise) {
        if (promise.status != 200) return false;
        auto const came = result(text(json(promise), "request_id"));
        return !came.contains("error") &&
               !(came.contains("type") && came.at("type") == "try_again");
    }
    [[nodiscard]] std::string checkpoint(std::string const& name,
                                         std::string const& kind = "weights") const {
        return "training_runs/" + model + "/checkpoints/" + kind + "/" + name;
    }
    boost::json::value listed(std::string const& path) {
        auto const answer = json(call("GET", "checkpoints"));
        for (auto const& one : answer.at("checkpoints").as_array()) {
            if (one.at("tinker_path").as_string() == path) return one;
        }
        return nullptr;
    }
    [[nodiscard]] std::string path(std::string const& name,
                                   std::string const& kind = "weights") const {
        return "tinker://" + model + "/" + kind + "/" + name;
    }
    std::size_t sessions() {
        return json(call("GET", "sessions")).at("sessions").as_array().size();
    }
    std::size_t checkpoints() {
        return json(call("GET", "checkpoints")).at("checkpoints").as_array().size();
    }

    std::string session{};
    std::string model{};
    std::string sampler{};
};

struct Case {
    char const* name;
    /// Asks for it, and says whether that was acknowledged.
    std::function<bool(FullDisk&)> ask;
    /// Whether it is so.
    std::function<bool(FullDisk&)> holds;
};

void PrintTo(Case const& one, std::ostream* out) { *out << one.name; }

bool fine(HttpResponse const& response) { return response.status < 300; }

std::vector<Case> cases() {
    return {
        {"CreateSession", [](FullDisk& t) { return fine(t.post("create_session", "{}")); },
         [](FullDisk& t) { return t.sessions() == 2; }},
        {"FinishSession",
         [](FullDisk& t) {
             return fine(
                 t.post("sessions/" + t.session + "/finish", R"({"reason":{"type":"success"}})"));
         },
         [](FullDisk& t) {
             return t.post("session_heartbeat", R"({"session_id":")" + t.session + R"("})")
                        .status == 410;
         }},
        {"PutIntoProject",
         [](FullDisk& t) {
             return fine(
                 t.call("PUT", "sessions/" + t.session + "/project", R"({"project_id":"P"})"));
         },
         [](FullDisk& t) {
             return !t.json(t.call("GET", "training_runs?project_id=P"))
                         .at("training_runs")
                         .as_array()
                         .empty();
         }},
        {"CreateSampler",
         [](FullDisk& t) {
             return fine(t.post("create_sampling_session",
                                R"({"session_id":")" + t.session +
                                    R"(","sampling_session_seq_id":9,"base_model":"test/bytes"})"));
         },
         [](FullDisk& t) { return fine(t.call("GET", "samplers/" + t.session + ":sample:9")); }},
        {"JoinSampler",
         [](FullDisk& t) {
             return fine(t.post("join_sampling_session",
                                R"({"sampling_session_id":")" + t.sampler + R"("})"));
         },
         [](FullDisk& t) {
             auto const next = t.post("join_sampling_session",
                                      R"({"sampling_session_id":")" + t.sampler + R"("})");
             return fine(next) && t.json(next).at("client_counter").as_int64() == 2;
         }},
        {"CreateModel",
         [](FullDisk& t) {
             return t.finished(t.post(
                 "create_model",
                 R"({"session_id":")" + t.session +
                     R"(","model_seq_id":7,"base_model":"test/bytes","lora_config":{"rank":2}})"));
         },
         [](FullDisk& t) {
             return fine(t.call("GET", "training_runs/" + t.session + ":train:7"));
         }},
        {"SaveWeights",
         [](FullDisk& t) {
             return t.finished(t.post("save_weights", t.save_body(t.model, 2, "new")));
         },
         [](FullDisk& t) { return !t.listed(t.path("new")).is_null(); }},
        {"SaveForSampler",
         [](FullDisk& t) {
             return t.finished(t.post("save_weights_for_sampler", t.save_body(t.model, 2, "new")));
         },
         [](FullDisk& t) { return !t.listed(t.path("new", "sampler_weights")).is_null(); }},
        {"SaveWithoutAName",
         [](FullDisk& t) {
             return t.finished(t.post(
                 "save_weights_for_sampler",
                 R"({"model_id":")" + t.model + R"(","seq_id":2,"sampling_session_seq_id":8})"));
         },
         [](FullDisk& t) { return fine(t.call("GET", "samplers/" + t.session + ":sample:8")); }},
        {"Overwrite",
         [](FullDisk& t) {
             return t.finished(
                 t.post("save_weights",
                        t.save_body(t.model, 2, "kept",
                                    R"(,"overwrite":true,"user_metadata":{"which":"second"})")));
         },
         [](FullDisk& t) {
             auto const one = t.listed(t.path("kept"));
             return !one.is_null() && !one.at("user_metadata").is_null();
         }},
        {"Delete", [](FullDisk& t) { return t.call("DELETE", t.checkpoint("kept")).status == 204; },
         [](FullDisk& t) { return t.listed(t.path("kept")).is_null(); }},
        {"Publish",
         [](FullDisk& t) { return fine(t.call("POST", t.checkpoint("kept") + "/publish")); },
         [](FullDisk& t) { return t.listed(t.path("kept")).at("public").as_bool(); }},
        {"SetLifetime",
         [](FullDisk& t) {
             return fine(t.call("PUT", t.checkpoint("kept") + "/ttl", R"({"ttl_seconds":3600})"));
         },
         [](FullDisk& t) { return !t.listed(t.path("kept")).at("expires_at").is_null(); }},
        {"Copy",
         [](FullDisk& t) {
             return fine(t.post("copy_weights", R"({"source_path":")" + t.path("kept") + R"("})"));
         },
         [](FullDisk& t) { return t.checkpoints() == 2; }},
        {"Sample", [](FullDisk& t) { return fine(t.post("asample", t.sample_body(t.sampler, 0))); },
         [](FullDisk& t) { return t.retrieve(t.sampler + ":0").status == 200; }},
        {"LoadIntoANewModel",
         [](FullDisk& t) {
             return t.finished(
                 t.post("load_weights", R"({"session_id":")" + t.session +
                                            R"(","model_seq_id":7,"optimizer":false,"path":")" +
                                            t.path("kept") + R"("})"));
         },
         [](FullDisk& t) {
             return fine(t.call("GET", "training_runs/" + t.session + ":train:7"));
         }},
    };
}

class WritesOf : public FullDisk, public ::testing::WithParamInterface<Case> {};
INSTANTIATE_TEST_SUITE_P(, WritesOf, ::testing::ValuesIn(cases()),
                         [](auto const& each) { return each.param.name; });

TEST_P(WritesOf, AreAcknowledgedOnceTheyAreThereAfterARestart) {
    prepare();
    EXPECT_TRUE(GetParam().ask(*this));
    restart_server();
    EXPECT_TRUE(GetParam().holds(*this));
}

TEST_P(WritesOf, AreRefusedByADiskThatIsFull) {
    prepare();
    FaultyDisk::instance().fail_from(0);
    auto const failed = FaultyDisk::instance().failed();
    EXPECT_FALSE(GetParam().ask(*this));
    EXPECT_GT(FaultyDisk::instance().failed(), failed);
    // Asked again, with a disk that is still full, it is not true either.
    EXPECT_FALSE(GetParam().ask(*this));
    restart_server();
    FaultyDisk::instance().heal();
    if (GetParam().name != std::string_view{"JoinSampler"}) {
        EXPECT_FALSE(GetParam().holds(*this));
    }
}

TEST_P(WritesOf, AnswerTheTruthWhicheverWriteFails) {
    for (std::uint64_t write = 0; write < 8; ++write) {
        prepare();
        FaultyDisk::instance().fail_from(write, 1);
        bool const acknowledged = GetParam().ask(*this);
        FaultyDisk::instance().heal();
        // What waits for the disk goes on by itself.
        clock->advance(5s);
        restart_server();
        bool const holds = GetParam().holds(*this);
        if (acknowledged) {
            EXPECT_TRUE(holds) << "write " << write;
        }
        restart_server();
        std::filesystem::remove_all(server_options.home);
    }
}

TEST_F(FullDisk, HoldsResultsBackUntilTheyAreWrittenAndSaysSo) {
    prepare();
    auto const id = text(json(post("asample", sample_body(sampler, 0))), "request_id");
    auto const pass = text(json(post("forward_backward", pass_body(model, 2))), "request_id");
    FaultyDisk::instance().fail_from(0);
    clock->advance(1s);
    for (auto const& one : {id, pass}) {
        auto const waiting = result(one);
        EXPECT_EQ(text(waiting, "type"), "try_again");
        EXPECT_EQ(text(waiting, "queue_state"), "paused_capacity");
        EXPECT_THAT(text(waiting, "queue_state_reason"),
                    AllOf(HasSubstr("full"), HasSubstr("make room on the disk")));
    }
    FaultyDisk::instance().heal();
    EXPECT_TRUE(result(id).contains("sequences"));
    EXPECT_TRUE(result(pass).contains("metrics"));
    EXPECT_EQ(call("GET", "healthz").status, 200);
}

TEST_F(FullDisk, ARepeatIsNotAcknowledgedBeforeTheFirst) {
    prepare();
    FaultyDisk::instance().fail_from(0);
    auto first = start("POST", "asample", sample_body(sampler, 0));
    auto second = start("POST", "asample", sample_body(sampler, 0));
    EXPECT_EQ(first.get().status, 500);
    EXPECT_EQ(second.get().status, 500);
    EXPECT_THAT(detail(post("create_session", "{}")),
                AllOf(HasSubstr("nothing was changed"), HasSubstr("full"), HasSubstr("make room")));
}

TEST_F(FullDisk, NothingIsLeftOfASaveThatFailed) {
    prepare();
    auto const folders = [&] {
        auto const all = std::filesystem::directory_iterator{server_options.home / "checkpoints"};
        return std::distance(begin(all), end(all));
    };
    EXPECT_EQ(folders(), 1);
    FaultyDisk::instance().fail_from(0);
    EXPECT_FALSE(finished(post("save_weights", save_body(model, 2, "new"))));
    FaultyDisk::instance().heal();
    run();
    EXPECT_EQ(folders(), 1);
    EXPECT_TRUE(finished(post("save_weights", save_body(model, 3, "new"))));
}

}  // namespace
}  // namespace tinkxx::local
