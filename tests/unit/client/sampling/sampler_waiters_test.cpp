// Who waits for a sampler may be forgotten at any time, also while others are told what became of
// it.
#include "service/sampling/sampler.hpp"

#include "client/options/make_core.hpp"
#include "client/options/resolved_options.hpp"
#include "support/raw_tinker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::client {
namespace {

using service::Sampler;
using ::testing::ElementsAre;

/// Says in `told` that it was told, and does what a test wants it to do then.
class Noting final : public service::SamplerWaiter {
public:
    Noting(std::string name, std::vector<std::string>& told, std::function<void()> then = {})
        : name_{std::move(name)}, told_{told}, then_{std::move(then)} {}

    void on_sampler(Result<void> outcome) override {
        told_.push_back(name_ + (outcome ? " ready" : " failed"));
        if (then_) then_();
    }
    void on_standing() override {}

private:
    std::string name_;
    std::vector<std::string>& told_;
    std::function<void()> then_;
};

class SamplerWaiters : public ::testing::Test {
protected:
    SamplerWaiters() {
        auto const config = std::make_shared<service::ClientConfig const>(with_credential(
            resolve(tinker.options(), [](char const*) { return std::optional<std::string>{}; })));
        auto core = make_core(tinker.runtime, config, service::SessionKind::session,
                              tinker.transport, std::nullopt, std::make_shared<std::uint64_t>());
        sampler = Sampler::make(std::move(core), {.options = {.base_model = "org/tiny"}});
        tinker.on_other =
            [this](testing::SentRequest const& request) -> support::RawTinker::Answer {
            if (!refuses || !request.path.ends_with("create_sampling_session")) return std::nullopt;
            return support::json_reply(R"({"detail":"no such model"})", 400);
        };
    }
    ~SamplerWaiters() override {
        sampler.reset();
        run();
    }
    void run() {
        while (tinker.clock->run_ready()) {
        }
    }
    void on_loop(std::function<void()> work) {
        tinker.clock->post(std::move(work));
        run();
    }

    support::RawTinker tinker;
    std::shared_ptr<Sampler> sampler;
    bool refuses{true};
    std::vector<std::string> told;
};

TEST_F(SamplerWaiters, TheNextMayBeForgottenByTheOneThatIsTold) {
    std::optional<Noting> second;
    std::optional<Noting> fourth;
    Noting first{"first", told, [&] {
                     sampler->forget(*second);
                     sampler->forget(*fourth);  // and gone
                     second.reset();
                     fourth.reset();
                 }};
    second.emplace("second", told);
    Noting third{"third", told};
    fourth.emplace("fourth", told);
    on_loop([&] {
        for (auto* each : {&first, &*second, &third, &*fourth}) {
            EXPECT_FALSE(sampler->when_ready(*each));
        }
    });
    EXPECT_THAT(told, ElementsAre("first failed", "third failed"));
    told.clear();
    refuses = false;
    on_loop([&] { EXPECT_FALSE(sampler->when_ready(third)); });
    EXPECT_THAT(told, ElementsAre("third ready")) << "the list is whole";
}

TEST_F(SamplerWaiters, WhoComesWhileOthersAreToldWaitsForAnotherTry) {
    Noting late{"late", told};
    Noting first{"first", told, [&] {
                     EXPECT_FALSE(sampler->when_ready(late));
                     refuses = false;
                 }};
    Noting second{"second", told, [this] { EXPECT_EQ(told.size(), 2U); }};
    on_loop([&] {
        EXPECT_FALSE(sampler->when_ready(first));
        EXPECT_FALSE(sampler->when_ready(second));
    });
    EXPECT_THAT(told, ElementsAre("first failed", "second failed", "late ready"));
}

TEST_F(SamplerWaiters, ALateComerMayBeForgottenAtOnce) {
    Noting late{"late", told};
    Noting first{"first", told, [&] { EXPECT_FALSE(sampler->when_ready(late)); }};
    Noting second{"second", told, [&] { sampler->forget(late); }};
    on_loop([&] {
        EXPECT_FALSE(sampler->when_ready(first));
        EXPECT_FALSE(sampler->when_ready(second));
    });
    EXPECT_THAT(told, ElementsAre("first failed", "second failed"));
}

}  // namespace
}  // namespace tinkxx::client
