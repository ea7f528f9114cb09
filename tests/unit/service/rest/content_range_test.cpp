#include "service/rest/content_range.hpp"

#include <gtest/gtest.h>

namespace tinkxx::service {
namespace {

TEST(ContentRange, IsAllThreeNumbers) {  // R-CLI-10
    EXPECT_EQ(parse_content_range("bytes 0-99/1234"),
              (ContentRange{.first = 0, .last = 99, .total = 1234}));
    for (auto const* text :
         {"", "bytes */1234", "bytes 0-99/*", "bytes 5-4/9", "bytes 0-9/9", "items 0-1/9",
          "bytes 0-9/10 ", "bytes -1-9/10", "bytes 0-99999999999999999999/5"}) {
        EXPECT_FALSE(parse_content_range(text)) << text;
    }
}

TEST(ContentRange, IsAskedForOfOneVersionOnly) {  // R-CLI-10
    EXPECT_EQ(range_validator({{"ETag", "\"a\""}, {"Last-Modified", "x"}}), "\"a\"");
    EXPECT_EQ(range_validator({{"ETag", "W/\"a\""}, {"Last-Modified", "x"}}), "x");
    EXPECT_EQ(range_validator({{"ETag", "W/\"a\""}}), "");
}

TEST(FileDigest, IsReadOfManyServers) {  // R-CLI-10
    using Kind = FileDigest::Kind;
    EXPECT_EQ(file_digest({{"Repr-Digest", "md5=:x=:, sha-256=:abc=:"}}, false),
              (FileDigest{Kind::sha256, "abc="}));
    EXPECT_EQ(file_digest({{"Digest", "SHA-256=abc="}}, false), (FileDigest{Kind::sha256, "abc="}));
    EXPECT_EQ(file_digest({{"x-amz-checksum-sha256", "abc="}}, false),
              (FileDigest{Kind::sha256, "abc="}));
    EXPECT_FALSE(file_digest({{"x-amz-checksum-sha256", "abc=-12"}}, false));
    EXPECT_EQ(file_digest({{"x-goog-hash", "crc32c=n03,md5=abc="}}, false),
              (FileDigest{Kind::md5, "abc="}));
    // That of an answer is that of a file only if it is all of it.
    EXPECT_FALSE(file_digest({{"Content-MD5", "abc="}}, false));
    EXPECT_EQ(file_digest({{"Content-MD5", "abc="}}, true), (FileDigest{Kind::md5, "abc="}));
    EXPECT_FALSE(file_digest({{"ETag", "\"abc\""}}, true));
}

}  // namespace
}  // namespace tinkxx::service
