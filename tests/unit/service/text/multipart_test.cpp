#include <tinkxx/multipart.hpp>

#include <tinkxx/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace tinkxx {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Multipart, WritesFieldsAndFiles) {  // R-EXT-90
    auto const form = Multipart{}
                          .field("purpose", "eval")
                          .file("data", {.name = "a.txt",
                                         .content = "hi",
                                         .content_type = "text/plain",
                                         .headers = {{"X-Part", "1"}}})
                          .boundary("b")
                          .encode();
    EXPECT_EQ(form.content_type, "multipart/form-data; boundary=b");
    EXPECT_EQ(form.body,
              "--b\r\n"
              "Content-Disposition: form-data; name=\"purpose\"\r\n\r\n"
              "eval\r\n"
              "--b\r\n"
              "Content-Disposition: form-data; name=\"data\"; filename=\"a.txt\"\r\n"
              "X-Part: 1\r\nContent-Type: text/plain\r\n\r\n"
              "hi\r\n"
              "--b--\r\n");
}

TEST(Multipart, NamesNestedFieldsInBrackets) {  // R-EXT-90
    auto const body =
        Multipart{}
            .field("a",
                   QueryValue::Parts{
                       {"b", 1}, {"c", QueryValue::List{"x", true}}, {"d", nullptr}, {"e", ""}})
            .encode()
            .body;
    EXPECT_THAT(body, HasSubstr("name=\"a[b]\"\r\n\r\n1\r\n"));
    EXPECT_THAT(body, HasSubstr("name=\"a[c][]\"\r\n\r\nx\r\n"));
    EXPECT_THAT(body, HasSubstr("name=\"a[c][]\"\r\n\r\ntrue\r\n"));
    EXPECT_THAT(body, Not(HasSubstr("a[d]"))) << "null is left out,";
    EXPECT_THAT(body, HasSubstr("name=\"a[e]\"\r\n\r\n\r\n")) << "empty text is not";
}

TEST(Multipart, CannotBeBrokenByNames) {
    auto const body =
        Multipart{}.file("a\"\r\nX: y", {.name = "\"; evil=\"", .content = ""}).encode().body;
    EXPECT_THAT(body, HasSubstr("name=\"a%22%0D%0AX: y\"; filename=\"%22; evil=%22\""));
}

TEST(Multipart, RefusesABoundaryThatTheContentHolds) {  // R-EXT-90
    Multipart form;
    form.field("a", "text --b text").boundary("b");
    EXPECT_THROW((void)form.encode(), ValidationError);
}

TEST(Multipart, RefusesMalformedBoundariesAndHeaders) {
    EXPECT_THROW((void)Multipart{}.boundary("a\"b").encode(), ValidationError);
    EXPECT_THROW((void)Multipart{}.boundary(std::string(71, 'a')).encode(), ValidationError);
    EXPECT_THROW((void)Multipart{}.boundary("a ").encode(), ValidationError);
    EXPECT_THROW((void)Multipart{}.file("a", {.headers = {{"x", "y\r\nz"}}}).encode(),
                 ValidationError);
    EXPECT_THROW((void)Multipart{}.file("a", {.content_type = "x\r\ny"}).encode(), ValidationError);
}

TEST(Multipart, QuotesABoundaryThatNeedsIt) {
    EXPECT_EQ(Multipart{}.boundary("a:b").encode().content_type,
              "multipart/form-data; boundary=\"a:b\"");
}

TEST(Multipart, MakesUpABoundaryThatTheContentDoesNotHold) {  // R-EXT-90, R-CONV-02
    auto const first = Multipart{}.encode(7);
    EXPECT_EQ(Multipart{}.encode(7).content_type, first.content_type);
    EXPECT_NE(Multipart{}.encode(8).content_type, first.content_type);
    auto const taken = Multipart{}.field("a", first.body).encode(7);
    EXPECT_NE(taken.content_type, first.content_type);
    EXPECT_THAT(taken.content_type, StartsWith("multipart/form-data; boundary=tinkxx-"));
}

}  // namespace
}  // namespace tinkxx
