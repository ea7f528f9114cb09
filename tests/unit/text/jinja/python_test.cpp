// Values, operators, methods and filters as Python has them. Expected texts were made with jinja2.
#include "unit/text/jinja/support.hpp"

#include <gtest/gtest.h>

namespace {

using tinkxx::text::testing::refusal;
using tinkxx::text::testing::rendered;

TEST(ChatTemplatePython, NumbersPrintAsThere) {
    EXPECT_EQ(rendered("{{ 1.0 }} {{ 1e16 }} {{ 1e-5 }} {{ 0.1 + 0.2 }} {{ 123456789.0 }}"),
              "1.0 1e+16 1e-05 0.30000000000000004 123456789.0");
    EXPECT_EQ(
        rendered("{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }}"),
        "3 -4 2 3.5 1024 0.5");
    EXPECT_EQ(rendered("{{ n }}", R"({"n": 123456789012345678901234567890})"),
              "123456789012345678901234567890");
    EXPECT_EQ(rendered("{{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ true + 1 }}"), "64 4 2");
}

TEST(ChatTemplatePython, ContainersPrintAsThere) {
    EXPECT_EQ(rendered("{{ [1, 'a', none, true, 1.5, {'k': (1,)}] }}"),
              "[1, 'a', None, True, 1.5, {'k': (1,)}]");
    EXPECT_EQ(rendered(R"({{ ["it's", 'say "x"', "\n\t\\", "\u200b", "é"] }})"),
              R"(["it's", 'say "x"', '\n\t\\', '\u200b', 'é'])");
    EXPECT_EQ(rendered("{{ {1: 2}.items() }} {{ range(1, 9, 2) }}"),
              "dict_items([(1, 2)]) range(1, 9, 2)");
}

TEST(ChatTemplatePython, SlicesAndIndexesCountCharacters) {
    EXPECT_EQ(rendered("{{ 'äöü€'[1:3] }} {{ 'äöü'[-1] }} {{ 'abc'[::-1] }} {{ [1, 2, 3][::2] }}"),
              "öü ü cba [1, 3]");
    EXPECT_EQ(rendered("{{ 'äöü' | length }} [{{ 'ab'[5] }}] {{ [1][5] is defined }}"),
              "3 [] False");
}

TEST(ChatTemplatePython, MethodsOfTexts) {
    EXPECT_EQ(
        rendered("{{ ' a b  c '.split() }} {{ 'a,b,c'.rsplit(',', 1) }} {{ 'xxaxx'.strip('x') }}"),
        "['a', 'b', 'c'] ['a,b', 'c'] a");
    EXPECT_EQ(
        rendered("{{ 'ab'.startswith(('x', 'a')) }} {{ 'Straße'.upper() }} {{ 'ΑΣ'.lower() }}"),
        "True STRASSE ας");
    EXPECT_EQ(rendered("{{ '%05.2f|%-4s|%x' % (3.14159, 'a', 255) }}"), "03.14|a   |ff");
    EXPECT_EQ(rendered("{{ '{:>5}|{:,}|{!r}'.format('a', 1234567, 'q') }}"), "    a|1,234,567|'q'");
    EXPECT_EQ(rendered("{{ 'a-b'.partition('-') }} {{ 'abc'.find('c') }} {{ '7'.zfill(3) }}"),
              "('a', '-', 'b') 2 007");
}

TEST(ChatTemplatePython, FiltersAreLazyAndRunOnce) {
    EXPECT_EQ(rendered("{% set m = [1, 2] | map('string') %}{{ m | join('+') }}{{ m | list }}"),
              "1+2[]");
    EXPECT_EQ(rendered("{{ 'yes' if [] | select else 'no' }}"), "yes");
    EXPECT_EQ(rendered("{{ [{'a': 1}, {'a': 2}, {}] | selectattr('a', 'eq', 2) | list }}"),
              "[{'a': 2}]");
}

TEST(ChatTemplatePython, FiltersForTemplatesOfTools) {
    EXPECT_EQ(rendered("{{ d | dictsort }} {{ d | items | list }}", R"({"d": {"b": 1, "A": 2}})"),
              "[('A', 2), ('b', 1)] [('b', 1), ('A', 2)]");
    EXPECT_EQ(rendered("{{ 'a\\nb\\n\\nc' | indent(2) }}"), "a\n  b\n\n  c");
    EXPECT_EQ(
        rendered("{{ none | default('x') }} {{ '' | default('x', true) }} {{ u | default('y') }}"),
        "None x y");
    EXPECT_EQ(
        rendered(
            "{% for g in l | groupby('k') %}{{ g.grouper }}:{{ g.list | length }} {% endfor %}",
            R"({"l": [{"k": "b"}, {"k": "a"}, {"k": "b"}]})"),
        "a:1 b:2 ");
}

TEST(ChatTemplatePython, ToJsonIsThatOfTransformers) {
    auto const variables = R"({"v": {"ü<": [1, 1.0, true, null, "a\"\n\u0001"], "e": {}}})";
    EXPECT_EQ(rendered("{{ v | tojson }}", variables),
              R"({"ü<": [1, 1.0, true, null, "a\"\n\u0001"], "e": {}})");
    EXPECT_EQ(rendered("{{ v | tojson(indent=2, sort_keys=true) }}", variables),
              "{\n  \"e\": {},\n  \"ü<\": [\n    1,\n    1.0,\n    true,\n    null,\n    "
              "\"a\\\"\\n\\u0001\"\n  ]\n}");
    EXPECT_EQ(rendered("{{ v | tojson(ensure_ascii=true, separators=(',', ':')) }}", variables),
              R"({"\u00fc<":[1,1.0,true,null,"a\"\n\u0001"],"e":{}})");
}

TEST(ChatTemplatePython, WhatIsUndefinedPrintsNothingAndFailsWhenUsed) {
    EXPECT_EQ(rendered("[{{ x }}{{ {}.y }}{{ 'a'.b }}{% for i in x %}{% endfor %}]"), "[]");
    EXPECT_EQ(refusal("{{ x + 1 }}"), "chat template: line 1: 'x' is undefined");
    EXPECT_EQ(refusal("{{ {}.a.b }}"), "chat template: line 1: 'dict object' has no attribute 'a'");
    EXPECT_EQ(rendered("{{ x is undefined }} {{ x == y }} {{ x is none }}"), "True True False");
}

TEST(ChatTemplatePython, SandboxLetsNothingBeChanged) {
    EXPECT_EQ(refusal("{{ [1].append(2) }}"),
              "chat template: line 1: access to attribute 'append' of 'list' object is unsafe.");
    EXPECT_EQ(refusal("{{ ''.__class__.__mro__ }}"),
              "chat template: line 1: access to attribute '__class__' of 'str' object is unsafe.");
    EXPECT_EQ(rendered("[{{ ''.__class__ }}]"), "[]");
}

TEST(ChatTemplatePython, KeysWinInBracketsAndMethodsBehindADot) {
    auto const variables = R"({"d": {"items": 1, "x": 2}})";
    EXPECT_EQ(rendered("{{ d['items'] }}{{ d['x'] }}{{ d.x }}{{ d.items() | length }}", variables),
              "1222");
}

}  // namespace
