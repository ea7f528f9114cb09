#include "files/download_folder.hpp"

#include <tinkxx/error.hpp>

#include "files/folder_writer.hpp"
#include "folder_fixture.hpp"

#include <gmock/gmock.h>

namespace tinkxx::files {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DownloadFolderTest : public FolderTest {
protected:
    Result<std::unique_ptr<DownloadFolder>> open(std::string const& what = "tinker://r/w/a") {
        return DownloadFolder::open(root / "target", what);
    }
};

TEST_F(DownloadFolderTest, GetsItsNameOnceAllIsThere) {  // R-CLI-10
    auto folder = open().value();
    auto part = folder->part(0, "sub/a").value();
    ASSERT_TRUE(part->write(std::string_view{"hello"}, 0));
    ASSERT_TRUE(part->finish_whole(5));
    EXPECT_FALSE(std::filesystem::exists(root / "target"));
    ASSERT_TRUE(folder->finish());
    EXPECT_THAT(listing(), ElementsAre("target", "target/sub", "target/sub/a"));
    EXPECT_EQ(content(root / "target/sub/a"), "hello");
}

TEST_F(DownloadFolderTest, KnowsThePiecesThatWereWritten) {  // R-CLI-10
    {
        auto folder = open().value();
        auto part = folder->part(0, "a").value();
        EXPECT_FALSE(part->begun());
        ASSERT_TRUE(part->begin({.bytes = 10, .validator = "\"v1\""}, 4));
        EXPECT_EQ(part->pieces(), 3U);
        EXPECT_EQ(part->piece_size(2), 2);
        ASSERT_TRUE(part->write(std::string_view{"ij"}, 8));
        ASSERT_TRUE(part->finish_piece(2));
        ASSERT_TRUE(part->write(std::string_view{"abcd"}, 0));
        ASSERT_TRUE(part->finish_piece(0));
        ASSERT_TRUE(part->write(std::string_view{"ef"}, 4));  // not all of it
    }
    auto folder = open().value();
    auto part = folder->part(0, "a").value();
    ASSERT_TRUE(part->begun());
    EXPECT_EQ(part->mark(), (FileVersion{.bytes = 10, .validator = "\"v1\""}));
    EXPECT_TRUE(part->has(0));
    EXPECT_FALSE(part->has(1));
    EXPECT_TRUE(part->has(2));
    EXPECT_EQ(part->bytes_there(), 6);
    // Of another file nothing is known.
    EXPECT_FALSE(folder->part(0, "b").value()->begun());
}

TEST_F(DownloadFolderTest, TrustsNoJournalFurtherThanItGoes) {  // R-CLI-10
    auto const journal = root / "target.partial/pieces/0";
    {
        auto folder = open().value();
        auto part = folder->part(0, "a").value();
        ASSERT_TRUE(part->begin({.bytes = 100, .validator = "v"}, 1));
        ASSERT_TRUE(part->write(std::string(20, 'x'), 0));
        ASSERT_TRUE(part->finish_piece(1));
    }
    // Cut off in the middle of "12.": that is not piece 1, nor 17 with what follows.
    put(journal, content(journal) + "1");
    {
        auto folder = open().value();
        auto part = folder->part(0, "a").value();
        ASSERT_TRUE(part->finish_piece(7));
    }
    {
        auto folder = open().value();
        auto part = folder->part(0, "a").value();
        EXPECT_EQ(part->bytes_there(), 2);
        EXPECT_TRUE(part->has(1));
        EXPECT_TRUE(part->has(7));
        EXPECT_FALSE(part->has(17));
    }
    // A piece behind the end of the file was never written.
    put(journal, content(journal) + "50.\n999999.\n-1.\nx.\n");
    EXPECT_EQ(open().value()->part(0, "a").value()->bytes_there(), 2);
    // Whatever else stands there is no journal.
    for (std::string const text :
         {"", "x", "tinkxx pieces 1\n", "tinkxx pieces 1\na\n-5\nv\n4\n",
          "tinkxx pieces 1\na\n9223372036854775807\nv\n1\n", "tinkxx pieces 1\na\n10\n\n4\n0.\n",
          "tinkxx pieces 1\na\n10\nv\n0\n0.\n"}) {
        put(journal, text);
        EXPECT_FALSE(open().value()->part(0, "a").value()->begun()) << text;
    }
}

TEST_F(DownloadFolderTest, KeepsNothingOfAFileThatCannotBeToldFromAnother) {  // R-CLI-10
    {
        auto folder = open().value();
        auto part = folder->part(0, "a").value();
        ASSERT_TRUE(part->begin({.bytes = 10, .validator = ""}, 4));
        ASSERT_TRUE(part->write(std::string_view{"abcd"}, 0));
        ASSERT_TRUE(part->finish_piece(0));
        EXPECT_TRUE(part->has(0));
    }
    EXPECT_FALSE(open().value()->part(0, "a").value()->begun());
}

TEST_F(DownloadFolderTest, TakesNothingOfOthers) {  // R-CLI-10
    std::filesystem::create_directory(root / "target.partial");
    put(root / "target.partial/mine", "m");
    auto refused = open();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::validation);
    EXPECT_EQ(refused.error().field(), "target");
    EXPECT_THAT(refused.error().what(), HasSubstr("is not what is left of a download"));
    EXPECT_EQ(content(root / "target.partial/mine"), "m");
    std::filesystem::remove_all(root / "target.partial");

    // Of another checkpoint.
    (void)open("tinker://r/w/other").value();
    EXPECT_FALSE(open());
    std::filesystem::remove_all(root / "target.partial");

    // A link in place of the marker.
    std::filesystem::create_directory(root / "target.partial");
    put(root / "elsewhere", "");
    std::filesystem::create_symlink(root / "elsewhere", root / "target.partial/.tinkxx-download");
    EXPECT_FALSE(open());
    EXPECT_EQ(content(root / "elsewhere"), "");
    std::filesystem::remove_all(root / "target.partial");

    put(root / "target", "mine");
    refused = open();
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().what(), HasSubstr("is there already"));
    std::filesystem::remove(root / "target");
    std::filesystem::create_symlink(root / "nowhere", root / "target");
    EXPECT_FALSE(open()) << "a link that leads nowhere is there, too";
}

TEST_F(DownloadFolderTest, IsNotWrittenByTwoAtOnce) {  // R-CLI-10
    auto const first = open().value();
    auto const second = open();
    ASSERT_FALSE(second);
    EXPECT_THAT(second.error().what(), HasSubstr("another download"));
}

TEST_F(DownloadFolderTest, ReplacesNothingAtItsEnd) {  // R-CLI-10
    auto folder = open().value();
    ASSERT_TRUE(folder->part(0, "a").value()->finish_whole(0));
    std::filesystem::create_directory(root / "target");
    auto const finished = folder->finish();
    ASSERT_FALSE(finished);
    EXPECT_THAT(finished.error().what(), HasSubstr("meanwhile"));
    EXPECT_TRUE(std::filesystem::exists(root / "target.partial/files/a"));
    EXPECT_THAT(std::filesystem::is_empty(root / "target"), true);
}

TEST_F(DownloadFolderTest, IsNamedAfterTheCheckpoint) {  // R-CLI-10
    EXPECT_EQ(DownloadFolder::usual_target("tinker://S:train:0/weights/step-10"),
              "S:train:0_weights_step-10");
}

TEST_F(DownloadFolderTest, NamesOfOthersStayInside) {  // R-REST-12
    for (std::string const name : {"a", "a/b", "a.b/c..d", "...", " "}) {
        EXPECT_FALSE(name_problem(name)) << name;
    }
    for (std::string const name :
         {"", "/a", "..", "../a", "a/..", "a/../b", ".", "./a", "a//b", "a/", "a\tb"}) {
        EXPECT_TRUE(name_problem(name)) << name;
    }
    EXPECT_TRUE(name_problem(std::string(256, 'a')));
    EXPECT_TRUE(name_problem(std::string("a\0b", 3)));
    // A folder that is a link is not followed.
    std::filesystem::create_directory(root / "in");
    std::filesystem::create_directory_symlink(root, root / "in/up");
    auto writer = FolderWriter::open(root / "in").value();
    EXPECT_FALSE(writer.make_file("up/x"));
    EXPECT_FALSE(std::filesystem::exists(root / "x"));
}

}  // namespace
}  // namespace tinkxx::files
