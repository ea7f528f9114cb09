// Against what the cookbook made of the same conversations, recorded by
// tests/oracle/renderers/record.py.
#include "oracle/renderers/answers.hpp"
#include "text/render/common/json.hpp"
#include "unit/text/render/support.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

namespace tinkxx::test {
namespace {

using text::render::Json;

bool is_refusal(Json const& value) {
    return value.is_object() && value.members().size() == 1 && value.find("error") != nullptr;
}

// Where two answers differ; empty if nowhere. What both refuse is the same, whatever they say.
std::string difference(Json const& ours, Json const& theirs, std::string const& place) {
    if (is_refusal(ours) || is_refusal(theirs)) {
        return is_refusal(ours) && is_refusal(theirs) ? "" : place;
    }
    if (ours.is_object() && theirs.is_object()) {
        if (ours.members().size() != theirs.members().size()) return place;
        for (auto const& [name, value] : ours.members()) {
            auto const* other = theirs.find(name);
            if (other == nullptr) return place + "/" + name;
            if (auto found = difference(value, *other, place + "/" + name); !found.empty())
                return found;
        }
        return "";
    }
    if (ours.is_array() && theirs.is_array()) {
        if (ours.items().size() != theirs.items().size()) return place;
        for (std::size_t i = 0; i < ours.items().size(); ++i) {
            auto found =
                difference(ours.items()[i], theirs.items()[i], place + "/" + std::to_string(i));
            if (!found.empty()) return found;
        }
        return "";
    }
    return write_json(ours) == write_json(theirs) ? "" : place;
}

TEST(RecordedConversations, BecomeTheTokensWeightsAndMessagesOfTheCookbook) {
    std::ifstream file{std::string{TINKXX_SOURCE_DIR} + "/tests/golden/text/renderers.jsonl"};
    ASSERT_TRUE(file);
    std::map<std::string, RendererAnswers> answers;
    std::set<std::string> renderers;
    for (std::string line; std::getline(file, line);) {
        auto const read = text::render::read_json(line);
        ASSERT_TRUE(read.value) << read.error;
        auto const& family = read.value->find("family")->text();
        auto const& request = *read.value->find("request");
        auto const& name = request.find("renderer")->text();
        renderers.insert(name);
        auto& ours = answers.try_emplace(family, small_tokenizer(family)).first->second;
        auto const answer = text::render::read_json(ours.answer(write_json(request)));
        ASSERT_TRUE(answer.value);
        EXPECT_EQ(difference(*answer.value, *read.value->find("answer"), ""), "")
            << name << ": " << line;
    }
    // None of the built-in renderers is left out.
    auto const names = text::Renderers{}.names();
    EXPECT_EQ(renderers, (std::set<std::string>{names.begin(), names.end()}));
}

}  // namespace
}  // namespace tinkxx::test
