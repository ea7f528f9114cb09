// Empty braces and designated members mean options, whatever else an overload takes.
#include <tinkxx/service_client.hpp>

#include "support/raw_tinker.hpp"

#include <gtest/gtest.h>

#include <concepts>
#include <cstdint>
#include <string>

namespace tinkxx {
namespace {

std::int64_t samples_asked(support::RawTinker const& tinker) {
    auto const* asked = tinker.submits().back().body.if_contains("num_samples");
    return asked != nullptr ? asked->as_int64() : 1;
}

TEST(Braces, OfASampleAreItsOptions) {
    support::RawTinker tinker;
    ServiceClient const service{tinker.options()};
    auto const sampler = service.create_sampling_client({.base_model = "org/tiny"});
    auto const prompt = ModelInput::from_tokens({1, 2});
    (void)sampler.sample(prompt, {.max_tokens = 1}, {}).get();
    EXPECT_EQ(samples_asked(tinker), 1);
    (void)sampler.sample(prompt, {}, {}, {}).get();
    EXPECT_EQ(samples_asked(tinker), 1);
    std::size_t const three = 3;
    // The answer has fewer, which does not matter here.
    (void)sampler.sample(prompt, {.max_tokens = 1}, three).result();
    EXPECT_EQ(samples_asked(tinker), 3);
    (void)sampler.sample(prompt, {.max_tokens = 1}, {.num_samples = 2}).result();
    EXPECT_EQ(samples_asked(tinker), 2);
}

TEST(Braces, OfANewModelAreItsOptions) {
    support::RawTinker tinker;
    ServiceClient const service{tinker.options()};
    auto const rank = [&] {
        return tinker.trained().back().json.at("lora_config").at("rank").as_int64();
    };
    (void)service.create_lora_training_client("org/tiny", {}).get();
    EXPECT_EQ(rank(), LoraConfig{}.rank);
    (void)service.create_lora_training_client("org/tiny", 8U).get();
    EXPECT_EQ(rank(), 8);
    (void)service.create_lora_training_client("org/tiny", {.lora = {.rank = 4}}).get();
    EXPECT_EQ(rank(), 4);
}

TEST(Braces, ASamplerIsMadeOfAnyText) {
    support::RawTinker tinker;
    ServiceClient const service{tinker.options()};
    char const* const literal = "org/tiny";
    std::string const text = literal;
    for (auto const& sampler :
         {service.create_sampling_client(literal), service.create_sampling_client(text),
          service.create_sampling_client({.base_model = text}),
          service.create_sampling_client("org/tiny", RetryConfig{})}) {
        (void)sampler.sample(ModelInput::from_tokens({1}), {.max_tokens = 1}).get();
        EXPECT_FALSE(tinker.submits().back().sampling_session_id.empty());
    }
}

// A truth value is no number of samples.
template <class Number>
concept counts = requires(SamplingClient client, ModelInput prompt, SamplingParams params,
                          Number number) { client.sample(prompt, params, number); };
static_assert(counts<int> && counts<std::uint64_t> && !counts<bool> && !counts<double>);

}  // namespace
}  // namespace tinkxx
