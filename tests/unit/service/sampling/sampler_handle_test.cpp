#include "service/sampling/sampler_handle.hpp"

#include "wire/json/base64.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <boost/json.hpp>
#include <set>
#include <string>

namespace tinkxx::service {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

__extension__ using WideInt = unsigned __int128;

SamplerSnapshot snapshot() {
    return {.sampling_session_id = "s-1:sample:0",
            .record_stability_info = true,
            .base_url = "https://host/services/x",
            .header_overrides = {{"X-Custom", "1"}, {"Authorization", "Bearer hunter2"}},
            .session = {.session_id = "s-1",
                        .flags = {.pjwt_auth_enabled = true, .fwdbwd_max_chunk_len = 7},
                        .dynamic = {.refresh_interval_sec = 15s}},
            .api_key = "tml-hunter2",
            .credential_cmd = "print hunter2"};
}

TEST(SamplerHandle, HoldsNoSecret) {  // R-SESS-35, R-CONF-13
    auto const handle = encode_sampler_handle(snapshot());
    auto const text = wire::decode_base64url(handle);
    ASSERT_TRUE(text);
    EXPECT_THAT(*text, Not(HasSubstr("hunter2")));
    auto const object = boost::json::parse(*text).as_object();
    EXPECT_TRUE(object.at("api_key").is_null());
    EXPECT_EQ(object.at("session_id"), "s-1");
    EXPECT_EQ(object.at("sampling_session_id"), "s-1:sample:0");
    EXPECT_EQ(object.at("record_stability_info"), true);
    EXPECT_EQ(object.at("base_url"), "https://host/services/x");
    EXPECT_EQ(object.at("default_headers_overrides").as_object().size(), 1U);
    EXPECT_EQ(object.at("client_config").at("fwdbwd_max_chunk_len"), 7);
    EXPECT_EQ(object.at("dynamic_config").at("refresh_interval_sec"), 15);
}

TEST(SamplerHandle, IsReadAsItWasWritten) {  // R-SESS-35
    auto const read = decode_sampler_handle(encode_sampler_handle(snapshot()));
    ASSERT_TRUE(read);
    auto expected = snapshot();
    expected.api_key.reset();
    expected.credential_cmd.reset();
    expected.header_overrides = {{"X-Custom", "1"}};
    EXPECT_EQ(*read, expected);
}

TEST(SamplerHandle, AnExportHoldsTheCredentialToo) {  // R-SESS-30, R-SESS-37
    EXPECT_EQ(*decode_sampler_handle(encode_sampler_export(snapshot())), snapshot());
}

TEST(SamplerHandle, AnExportHoldsNoTokenAndNoRetryPolicy) {  // R-SESS-33, R-SESS-37
    auto const text = wire::decode_base64url(encode_sampler_export(snapshot()));
    auto const document = boost::json::parse(*text);
    std::set<std::string> names;
    for (auto const& member : document.as_object()) names.insert(member.key());
    EXPECT_THAT(names, ::testing::UnorderedElementsAre(
                           "session_id", "sampling_session_id", "record_stability_info", "base_url",
                           "api_key", "credential_cmd", "default_headers_overrides",
                           "client_config", "dynamic_config"));
}

TEST(SamplerHandle, IgnoresMembersThatItDoesNotKnow) {  // R-SESS-35
    auto const read = decode_sampler_handle(wire::base64url(
        R"({"session_id":"s","sampling_session_id":"x","base_url":"http://h","new":[1],
            "api_key":null})"));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->session.flags, wire::ClientFlags{}) << "what is missing has its default";
    EXPECT_FALSE(read->record_stability_info);
}

TEST(SamplerHandle, RefusesWhatIsNone) {  // R-SESS-35
    for (
        auto const* bad :
        {"", "[]", "{}", "nonsense", R"({"session_id":"s"})",
         R"({"session_id":"s","sampling_session_id":"x"})",
         R"({"session_id":5,"sampling_session_id":"x","base_url":"http://h"})",
         R"({"session_id":"s","sampling_session_id":"x","base_url":"h","client_config":[]})",
         R"({"session_id":"s","sampling_session_id":"x","base_url":"h","dynamic_config":5})",
         R"({"session_id":"s","sampling_session_id":"x","base_url":"h","record_stability_info":1})",
         R"({"session_id":"s","sampling_session_id":"x","base_url":"h",
              "default_headers_overrides":{"a":1}})"}) {
        auto const read = decode_sampler_handle(wire::base64url(bad));
        ASSERT_FALSE(read) << bad;
        EXPECT_EQ(read.error().kind(), ErrorKind::validation);
        EXPECT_EQ(read.error().field(), "handle");
    }
    EXPECT_FALSE(decode_sampler_handle("not base64!"));
}

RC_GTEST_PROP(SamplerHandle, NoTextCrashesIt, (std::string const& text)) {  // R-SESS-35
    (void)decode_sampler_handle(text);
    (void)decode_sampler_handle(wire::base64url(text));
}

RC_GTEST_PROP(SamplerHandle, CopiesHaveDisjointSequenceIds,  // R-SESS-32
              (std::uint64_t high, std::uint64_t low)) {
    auto const clone = random_clone_id(high, low);
    RC_ASSERT(clone >= 1 && clone <= 1'000'000'000);
    auto const expected =
        static_cast<std::int64_t>(((static_cast<WideInt>(high) << 64U) + low) % 1'000'000'000U);
    RC_ASSERT(clone == expected + 1);
}

}  // namespace
}  // namespace tinkxx::service
