#include "engine/kernels/isa/isa.hpp"

#include "engine/kernels/isa/isa_choice.hpp"
#include "engine/kernels/kernel_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace tinkxx::engine {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

bool up_to_avx2(Isa isa) noexcept { return isa <= Isa::avx2; }
bool everything(Isa) noexcept { return true; }
bool plain_only(Isa isa) noexcept { return isa == Isa::plain; }

TEST(Isa, TheBestThereIsIsChosen) {
    EXPECT_EQ(choose_isa("", &everything).isa, Isa::amx);
    EXPECT_EQ(choose_isa("", &up_to_avx2).isa, Isa::avx2);
    EXPECT_EQ(choose_isa("", &plain_only).isa, Isa::plain);
    EXPECT_THAT(choose_isa("", &plain_only).warning, IsEmpty());
}

TEST(Isa, WhatIsAskedForIsChosenIfItCanBeHad) {
    for (auto const isa : {Isa::plain, Isa::avx2, Isa::avx512, Isa::amx}) {
        auto const choice = choose_isa(isa_name(isa), &everything);
        EXPECT_EQ(choice.isa, isa);
        EXPECT_THAT(choice.warning, IsEmpty());
    }
}

TEST(Isa, WhatTheMachineLacksIsReplacedByTheBestWithAWarning) {
    auto const choice = choose_isa("amx", &up_to_avx2);
    EXPECT_EQ(choice.isa, Isa::avx2);
    EXPECT_THAT(choice.warning, HasSubstr("TINKXX_ENGINE_ISA"));
    EXPECT_THAT(choice.warning, HasSubstr("does not offer amx"));
    EXPECT_THAT(choice.warning, HasSubstr("using avx2"));
}

TEST(Isa, AnUnknownNameIsReplacedByTheBestWithAWarning) {
    auto const choice = choose_isa("sse9", &up_to_avx2);
    EXPECT_EQ(choice.isa, Isa::avx2);
    EXPECT_THAT(choice.warning, HasSubstr("\"sse9\" is not plain, avx2, avx512 or amx"));
}

TEST(Isa, TheProcessUsesSomethingThatTheMachineHas) {
    EXPECT_TRUE(isa_supported(chosen_isa().isa));
    EXPECT_EQ(isa_name(), isa_name(chosen_isa().isa));
    EXPECT_EQ(&kernels(), kernel_table(chosen_isa().isa));
    auto const* const wanted = std::getenv("TINKXX_ENGINE_ISA");
    if (wanted != nullptr && std::string_view{wanted} == "plain") {
        EXPECT_EQ(isa_name(), "plain");
    }
}

}  // namespace
}  // namespace tinkxx::engine
