// Which variable a name means, and where white space goes.
#include "unit/text/jinja/support.hpp"

#include <gtest/gtest.h>

namespace {

using tinkxx::text::testing::refusal;
using tinkxx::text::testing::rendered;

TEST(ChatTemplateScope, SetInALoopDoesNotLeaveIt) {
    EXPECT_EQ(rendered("{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = i * 10 %}{{ x }},"
                       "{% endfor %}{{ x }}"),
              "110,120,1");
}

TEST(ChatTemplateScope, SetInABranchReachesTheCodeBehindIt) {
    EXPECT_EQ(rendered("{% if true %}{% set x = 1 %}{% endif %}{{ x }}"), "1");
    EXPECT_EQ(rendered("{% if false %}{% set x = 1 %}{% endif %}{{ x }}", R"({"x": 7})"), "7");
}

TEST(ChatTemplateScope, NameThatIsSetLaterHidesTheGivenOneInLoopsBefore) {
    EXPECT_EQ(
        rendered("{% for i in [1] %}[{{ x }}]{% endfor %}{% set x = 5 %}{{ x }}", R"({"x": 7})"),
        "[]5");
}

TEST(ChatTemplateScope, NamespaceCarriesValuesOutOfLoops) {
    EXPECT_EQ(rendered("{% set ns = namespace(n=0) %}{% for i in range(4) %}"
                       "{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}"),
              "6");
}

TEST(ChatTemplateScope, MacroSeesVariablesAsTheyAreWhenItIsCalled) {
    EXPECT_EQ(rendered("{% set x = 1 %}{% macro f(a, b=2) %}{{ x }}{{ a }}{{ b }}{% endmacro %}"
                       "{% set x = 3 %}{{ f(9) }}-{{ f(a=1, b=x) }}"),
              "392-313");
}

TEST(ChatTemplateScope, MacroTakesMoreArgumentsIfItUsesThem) {
    EXPECT_EQ(rendered("{% macro f(a) %}{{ a }}|{{ varargs }}|{{ kwargs }}{% endmacro %}"
                       "{{ f(1, 2, 3, k='v') }}"),
              "1|(2, 3)|{'k': 'v'}");
    EXPECT_EQ(refusal("{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}"),
              "chat template: line 1: macro 'f' takes not more than 1 argument(s)");
}

TEST(ChatTemplateScope, CallBlockGivesItsBodyToTheMacro) {
    EXPECT_EQ(rendered("{% macro m(x) %}<{{ caller(x, 'b') }}>{% endmacro %}"
                       "{% set y = 5 %}{% call(p, q) m('a') %}{{ p }}{{ q }}{{ y }}{% endcall %}"),
              "<ab5>");
}

TEST(ChatTemplateScope, RecursiveLoopCallsItself) {
    EXPECT_EQ(rendered("{% for n in tree recursive %}{{ n.v }}@{{ loop.depth }}"
                       "{% if n.c %}({{ loop(n.c) }}){% endif %}{% endfor %}",
                       R"({"tree": [{"v": 1, "c": [{"v": 2}, {"v": 3}]}]})"),
              "1@1(2@23@2)");
}

TEST(ChatTemplateScope, LoopKnowsItsPlaceAmongThoseThatPassTheTest) {
    EXPECT_EQ(rendered("{% for i in range(6) if i % 2 %}{{ loop.index }}/{{ loop.length }}"
                       "{{ '.' if loop.last else ',' }}{% else %}none{% endfor %}"),
              "1/3,2/3,3/3.");
}

TEST(ChatTemplateScope, ElseOfALoopRunsIfNoTurnCameToItsEnd) {
    EXPECT_EQ(rendered("{% for i in [1] %}{% break %}{% else %}E{% endfor %}"), "E");
    EXPECT_EQ(rendered("{% for i in [1] %}{{ i }}{% else %}E{% endfor %}"), "1");
}

TEST(ChatTemplateScope, BlocksOfTextCanBeSetFilteredAndScoped) {
    EXPECT_EQ(rendered("{% set x | upper %}ab{% endset %}{{ x }}"), "AB");
    EXPECT_EQ(rendered("{% filter upper | replace('A', 'x') %}banana{% endfilter %}"), "BxNxNx");
    EXPECT_EQ(rendered("{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}"),
              "211");
}

TEST(ChatTemplateSpace, LinesOfBlocksDisappear) {
    EXPECT_EQ(rendered("a\n  {% if true %}\n  b\n  {% endif %}\nc\n"), "a\n  b\nc");
    EXPECT_EQ(rendered("a\n  {%+ if true %}b{% endif +%}\nc"), "a\n  b\nc");
    EXPECT_EQ(rendered("a \n {{- 'x' -}} \n b"), "axb");
    EXPECT_EQ(rendered("a {#- gone -#} b {# gone #}\nc"), "ab c");
    EXPECT_EQ(rendered("{% raw %}{{ x }}{% endraw %}"), "{{ x }}");
}

TEST(ChatTemplateSpace, ErrorsHaveTheLine) {
    EXPECT_EQ(refusal("a\r\nb\n{{ x.y.z }}"), "chat template: line 3: 'x' is undefined");
    EXPECT_EQ(refusal("\n{% if %}"),
              "chat template: line 2: Expected an expression, got 'end of statement block'");
    EXPECT_EQ(refusal("{% include 'x' %}"),
              "chat template: line 1: 'include' is not supported: a chat template is one text and "
              "has no others to take from");
}

}  // namespace
