// Large samples, which go to the callback executor and back, ended at awkward moments.
#include <tinkxx/service_client.hpp>
#include <tinkxx/testing/fake_transport.hpp>

#include "thread/crew.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tinkxx {
namespace {

using testing::crew;
using testing::FakeTransport;
using testing::race;
using testing::Reply;
using testing::SentRequest;

// Enough that neither the prompt nor the answer is handled on the loop.
constexpr std::size_t prompt_tokens = 4000;
constexpr std::size_t answer_tokens = 12'000;

std::string const& large_answer() {
    static auto const text = [] {
        std::string tokens;
        for (std::size_t i = 0; i < answer_tokens; ++i) {
            tokens += (i == 0 ? "" : ",") + std::to_string(100'000 + i);
        }
        return R"({"sequences":[{"stop_reason":"length","tokens":[)" + tokens + R"(]}]})";
    }();
    return text;
}

/// On the loop thread. Every submit is accepted, every poll answered with much.
std::optional<Reply> serve(SentRequest const& request) {
    auto const answer = [](std::string body) {
        Reply reply;
        reply.headers = {{"Content-Type", "application/json"}};
        reply.body = std::move(body);
        return reply;
    };
    if (request.path.ends_with("/asample")) return answer(R"({"request_id":"r"})");
    if (request.path.ends_with("/retrieve_future")) return answer(large_answer());
    if (request.path.ends_with("/create_session")) return answer(R"({"session_id":"s"})");
    if (request.path.ends_with("/create_sampling_session")) {
        return answer(R"({"sampling_session_id":"s:0"})");
    }
    return answer("{}");
}

/// A client on a runtime of its own.
struct World {
    World() { transport->otherwise(serve); }
    [[nodiscard]] ServiceClient client() const {
        ClientOptions options;
        options.base_url = "http://host";
        options.api_key = "tml-test-key";
        options.telemetry = false;
        options.transport = transport;
        options.runtime = runtime;
        return ServiceClient{std::move(options)};
    }

    Runtime runtime{RuntimeOptions{.log = silent_log()}};
    std::shared_ptr<FakeTransport> const transport{
        std::make_shared<FakeTransport>(runtime.scheduler())};
};

Future<SampleResponse> draw(SamplingClient const& from) {
    return from.sample(ModelInput::from_tokens(std::vector<Token>(prompt_tokens, 1)),
                       {.max_tokens = 4});
}

/// Ends with all of the answer, or with a word that it was ended; never hangs.
bool whole(Result<SampleResponse> const& result) {
    if (result) {
        EXPECT_EQ(result->sequences.at(0).tokens.size(), answer_tokens);
        return true;
    }
    EXPECT_TRUE(result.error().kind() == ErrorKind::cancelled ||
                result.error().kind() == ErrorKind::closed)
        << result.error().what();
    return false;
}

TEST(SamplingRace, LargeAnswersReachEveryThread) {  // R-CONV-03
    World const world;
    auto const service = world.client();
    auto const sampler = service.create_sampling_client("m");
    std::atomic<int> right{0};
    race(crew, [&](int) {
        std::vector<Future<SampleResponse>> pending;
        for (int i = 0; i < 4; ++i) pending.push_back(draw(sampler));
        for (auto& each : pending) right += whole(each.result()) ? 1 : 0;
    });
    EXPECT_EQ(right, crew * 4);
}

TEST(SamplingRace, CancelsRaceWithTheHandOver) {  // R-FUT-22
    World const world;
    auto const service = world.client();
    auto const sampler = service.create_sampling_client("m");
    race(crew, [&](int me) {
        for (int i = 0; i < 12; ++i) {
            auto pending = draw(sampler);
            auto kept = draw(sampler);
            for (int n = 0; n < (me + i) % 7; ++n) std::this_thread::yield();
            if (i % 3 == 0) pending = {};  // dropped, not cancelled
            pending.cancel();
            if (i % 4 == 0) (void)whole(kept.result());
            kept.cancel();
        }
    });
    (void)service.status().get();
    EXPECT_TRUE(whole(draw(sampler).result()));
}

TEST(SamplingRace, ClosesRaceWithTheHandOver) {  // R-SESS-21
    World const world;
    for (int round = 0; round < 6; ++round) {
        std::optional<ServiceClient> service{world.client()};
        std::optional<SamplingClient> sampler{service->create_sampling_client("m")};
        (void)sampler->sampling_session_id().get();
        race(crew, [&, copy = *sampler](int me) {
            auto pending = draw(copy);
            auto other = draw(copy);
            if (me == round) {
                auto closing = service->close();
                (void)closing.result();
            }
            (void)whole(pending.result());
            (void)whole(other.result());
        });
        service.reset();
        sampler.reset();
    }
    EXPECT_EQ(world.transport->open_count(), 0U);
}

TEST(SamplingRace, RuntimesEndWhileLargeAnswersAreRead) {  // R-SESS-21
    for (int round = 0; round < 6; ++round) {
        std::vector<Future<SampleResponse>> pending(crew * 2);
        {
            World world;
            auto const service = world.client();
            auto const sampler = service.create_sampling_client("m");
            race(crew, [&](int me) {
                auto const mine = static_cast<std::size_t>(me) * 2;
                pending[mine] = draw(sampler);
                pending[mine + 1] = draw(sampler);
                if (me == 0 && round % 2 == 0) world.runtime.shutdown();
            });
            if (round % 3 == 1) (void)pending[0].result();
        }  // the last handle ends the runtime
        for (std::size_t i = round % 3 == 1 ? 1 : 0; i < pending.size(); ++i) {
            (void)whole(pending[i].result());
        }
    }
}

}  // namespace
}  // namespace tinkxx
