// Templates that never end, recurse or make too much: an error within bounded time and memory.
#include "unit/text/jinja/support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using ::testing::HasSubstr;
using tinkxx::text::ChatTemplateOptions;
using tinkxx::text::testing::refusal;
using tinkxx::text::testing::rendered;

TEST(ChatTemplateLimits, LoopsWithinLoopsEnd) {
    EXPECT_THAT(
        refusal("{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}"
                "{% endfor %}{% endfor %}{% endfor %}",
                "{}", {.max_steps = 100'000}),
        HasSubstr("more than 100000 steps are needed"));
    EXPECT_THAT(refusal("{{ range(100001) }}"), HasSubstr("Range too big"));
}

TEST(ChatTemplateLimits, MacrosThatCallThemselvesEnd) {
    EXPECT_THAT(refusal("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
                HasSubstr("calls are nested more than 2000 levels deep"));
    EXPECT_THAT(refusal("{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}"),
                HasSubstr("calls are nested more than"));
}

TEST(ChatTemplateLimits, OutputAndMemoryAreBounded) {
    EXPECT_THAT(refusal("{% for i in range(1000) %}0123456789{% endfor %}", "{}",
                        {.max_output_bytes = 5000}),
                HasSubstr("the text has more than 5000 bytes"));
    EXPECT_THAT(refusal("{{ ('a' * 200000) | length }}", "{}", {.max_memory_bytes = 100'000}),
                HasSubstr("more than 100000 bytes of memory"));
    EXPECT_THAT(refusal("{{ 'a' * 99999999999 }}"), HasSubstr("is longer than"));
    EXPECT_THAT(refusal("{{ ''.center(99999999999) }}"), HasSubstr("is longer than"));
    EXPECT_THAT(refusal("{{ '%99999999999d' % 1 }}"), HasSubstr("is longer than"));
}

TEST(ChatTemplateLimits, ValuesThatHoldThemselvesOftenAreNotShown) {
    auto const doubling = std::string{
        "{% set ns = namespace(v=[1]) %}{% for i in range(60) %}"
        "{% set ns.v = [ns.v, ns.v] %}{% endfor %}"};
    ChatTemplateOptions const options{.max_steps = 100'000};
    EXPECT_NE(refusal(doubling + "{{ ns.v }}", "{}", options), "no error");
    EXPECT_NE(refusal(doubling + "{{ ns.v | tojson }}", "{}", options), "no error");
    EXPECT_NE(refusal("{% set a = namespace(v=[1]) %}{% set b = namespace(v=[1]) %}"
                      "{% for i in range(60) %}{% set a.v = [a.v, a.v] %}{% set b.v = [b.v, b.v] %}"
                      "{% endfor %}{{ a.v == b.v }}",
                      "{}", options),
              "no error");
    EXPECT_NE(refusal("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}"), "no error");
    EXPECT_NE(refusal("{% set ns = namespace(v=[]) %}{% for i in range(5000) %}"
                      "{% set ns.v = [ns.v] %}{% endfor %}{{ ns.v }}"),
              "no error");
}

TEST(ChatTemplateLimits, GeneratorsWithinGeneratorsEnd) {
    EXPECT_THAT(refusal("{% set ns = namespace(v=[1]) %}{% for i in range(50000) %}"
                        "{% set ns.v = ns.v | map('string') %}{% endfor %}{{ ns.v | list }}"),
                HasSubstr("nested"));
}

TEST(ChatTemplateLimits, SourcesAreBounded) {
    EXPECT_THAT(refusal("{{ " + std::string(5000, '(')), HasSubstr("nested more than 120"));
    EXPECT_THAT(refusal("{{ " + std::string(5000, '-') + "1 }}"), HasSubstr("nested more than"));
    std::string dots = "{{ x";
    for (int i = 0; i < 5000; ++i) dots += ".a";
    EXPECT_THAT(refusal(dots + " }}"), HasSubstr("nested more than"));
    std::string ifs;
    for (int i = 0; i < 5000; ++i) ifs += "{% if x %}";
    EXPECT_THAT(refusal(ifs), HasSubstr("nested more than"));
    EXPECT_THAT(refusal("aaaa", "{}", {.max_source_bytes = 3}), HasSubstr("max_source_bytes"));
    EXPECT_THAT(refusal("a\xff"), HasSubstr("not valid UTF-8"));
    EXPECT_THAT(refusal("{{ x }}", "{\"x\": " + std::string(5000, '[') + "}"),
                HasSubstr("nested more than 200 levels"));
}

TEST(ChatTemplateLimits, LongSumsAreNoNesting) {
    std::string sum = "{{ 'a'";
    for (int i = 0; i < 2000; ++i) sum += " + 'a'";
    EXPECT_EQ(rendered(sum + " }}").size(), 2001U);
}

}  // namespace
