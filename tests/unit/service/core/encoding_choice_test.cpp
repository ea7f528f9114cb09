// Which encoding a server takes, found by trying.
#include "service/core/encoding_choice.hpp"

#include <gtest/gtest.h>

namespace tinkxx::service {
namespace {

using wire::Encoding;

Error status(int code, std::string type = "application/json") {
    ErrorDetails details;
    details.kind = ErrorKind::status;
    details.http_status = code;
    details.headers = {{"Content-Type", std::move(type)}};
    return Error{std::move(details)};
}

TEST(EncodingChoice, BeginsWithProtobuf) {  // R-TRAIN-30
    EncodingChoice const choice;
    EXPECT_EQ(choice.current(), Encoding::protobuf);
    EXPECT_FALSE(choice.decided());
    EXPECT_FALSE(choice.old_server());
}

TEST(EncodingChoice, TriesJsonWhereTheAnswerCanBeAboutTheEncoding) {  // R-WIRE-10
    EncodingChoice const choice;
    for (int const code : {400, 415, 422}) {
        EXPECT_EQ(choice.refused(Encoding::protobuf, status(code)), Encoding::json) << code;
    }
    EXPECT_EQ(choice.refused(Encoding::protobuf, status(500, "text/plain; charset=utf-8")),
              Encoding::json);
    for (int const code : {401, 402, 403, 404, 409, 429, 500, 503}) {
        EXPECT_FALSE(choice.refused(Encoding::protobuf, status(code))) << code;
    }
    EXPECT_FALSE(choice.refused(Encoding::protobuf, Error{{.kind = ErrorKind::connection}}));
}

TEST(EncodingChoice, RemembersWhatWasTaken) {  // R-WIRE-10
    EncodingChoice choice;
    EXPECT_TRUE(choice.accepted(Encoding::json));
    EXPECT_FALSE(choice.accepted(Encoding::json)) << "no news";
    EXPECT_EQ(choice.current(), Encoding::json);
    EXPECT_TRUE(choice.old_server());

    EncodingChoice modern;
    EXPECT_TRUE(modern.accepted(Encoding::protobuf));
    EXPECT_FALSE(modern.refused(Encoding::protobuf, status(400))) << "then it is the data";
    EXPECT_FALSE(modern.old_server());
}

TEST(EncodingChoice, WhatWasTriedBeforeOthersFoundOutIsTriedAnewToo) {  // R-WIRE-10
    EncodingChoice choice;
    choice.accepted(Encoding::json);  // of another model, or another chunk, meanwhile
    EXPECT_EQ(choice.refused(Encoding::protobuf, status(415)), Encoding::json);
    EncodingChoice assumed;
    assumed.assume_old();
    EXPECT_EQ(assumed.refused(Encoding::protobuf, status(500, "text/plain")), Encoding::json);
}

TEST(EncodingChoice, GoesBackToProtobufIfJsonIsNoMedia) {  // R-WIRE-10
    EncodingChoice choice;
    choice.accepted(Encoding::json);
    EXPECT_EQ(choice.refused(Encoding::json, status(415)), Encoding::protobuf);
    EXPECT_FALSE(choice.refused(Encoding::json, status(400)));
    EXPECT_TRUE(choice.accepted(Encoding::protobuf));
    EXPECT_EQ(choice.current(), Encoding::protobuf);
}

TEST(EncodingChoice, AServerWithoutAConfigurationIsOldUnlessKnownBetter) {  // R-WIRE-10
    EncodingChoice choice;
    EXPECT_TRUE(choice.assume_old());
    EXPECT_TRUE(choice.old_server());
    EXPECT_FALSE(choice.decided());
    EXPECT_EQ(choice.refused(Encoding::json, status(415)), Encoding::protobuf);
    EncodingChoice modern;
    modern.accepted(Encoding::protobuf);
    EXPECT_FALSE(modern.assume_old());
    EXPECT_EQ(modern.current(), Encoding::protobuf);
}

TEST(EncodingChoice, ThatTheCallerMadeNeverChanges) {  // R-WIRE-10
    EncodingChoice choice{Encoding::json};
    EXPECT_FALSE(choice.refused(Encoding::json, status(415)));
    EXPECT_FALSE(choice.accepted(Encoding::protobuf));
    EXPECT_FALSE(choice.assume_old());
    EXPECT_EQ(choice.current(), Encoding::json);
    EXPECT_FALSE(choice.old_server()) << "nobody said so";
}

TEST(EncodingChoices, AreSharedByEndpoint) {  // R-WIRE-10
    EncodingChoices choices;
    choices.get("http://a")->accepted(Encoding::json);
    EXPECT_EQ(choices.get("http://a")->current(), Encoding::json);
    EXPECT_FALSE(choices.get("http://b")->decided());
}

}  // namespace
}  // namespace tinkxx::service
