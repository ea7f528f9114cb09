#include "files/extraction.hpp"

#include <tinkxx/error.hpp>

#include "folder_fixture.hpp"
#include "support/tar_text.hpp"

#include <gmock/gmock.h>

#include <zlib.h>

#include <span>

namespace tinkxx::files {
namespace {

using support::pax_record;
using support::tar_end;
using support::tar_entry;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string gzip(std::string const& text) {
    z_stream stream{};
    EXPECT_EQ(::deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    std::string out(::deflateBound(&stream, text.size()) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
    out.resize(stream.total_out);
    ::deflateEnd(&stream);
    return out;
}

class ExtractionTest : public FolderTest {
protected:
    Result<std::vector<Extraction::Written>> extract(std::string const& archive,
                                                     TarLimits limits = {}) {
        put(root / "archive", archive);
        auto extraction = Extraction::begin(root / "archive", root / "target", limits);
        if (!extraction) return extraction.error();
        for (;;) {
            auto const done = (*extraction)->step();
            if (!done) return done.error();
            if (*done) return (*extraction)->written();
        }
    }
    void expect_refused(std::string const& archive, std::string const& why, TarLimits limits = {}) {
        auto const outcome = extract(archive, limits);
        ASSERT_FALSE(outcome) << why;
        EXPECT_EQ(outcome.error().kind(), ErrorKind::validation);
        EXPECT_THAT(outcome.error().what(), HasSubstr(why));
        EXPECT_THAT(outcome.error().what(), HasSubstr("corrupt"));
        // Nothing is left, and nothing was written elsewhere.
        EXPECT_THAT(listing(), ElementsAre("archive"));
    }
};

TEST_F(ExtractionTest, WritesFilesAndFolders) {  // R-CLI-10, R-CLI-11
    std::string const long_text(300'000, 'x');
    auto const archive = tar_entry("./", "", '5') + tar_entry("a.json", "{}") +
                         tar_entry("empty", "") + tar_entry("sub/", "", '5') +
                         tar_entry("sub/deep/b.bin", long_text) + tar_end();
    auto const written = extract(archive);
    ASSERT_TRUE(written) << written.error().what();
    EXPECT_THAT(*written,
                ElementsAre(Pair("a.json", 2), Pair("empty", 0), Pair("sub/deep/b.bin", 300'000)));
    EXPECT_EQ(content(root / "target/a.json"), "{}");
    EXPECT_EQ(content(root / "target/empty"), "");
    EXPECT_EQ(content(root / "target/sub/deep/b.bin"), long_text);
}

TEST_F(ExtractionTest, ReadsGzip) {  // R-CLI-10
    std::string text;
    for (int i = 0; i < 200'000; ++i) text += std::to_string(i * 7919 % 10'007);
    auto const packed = gzip(tar_entry("a", text) + tar_end());
    auto const written = extract(packed);
    ASSERT_TRUE(written) << written.error().what();
    EXPECT_EQ(content(root / "target/a"), text);
}

TEST_F(ExtractionTest, ReadsLongNamesOfBothKinds) {  // R-CLI-10
    std::string const folder(120, 'f');
    auto const gnu = folder + "/gnu";
    auto const pax = folder + "/pax";
    auto const archive =
        tar_entry("././@LongLink", gnu + '\0', 'L') + tar_entry(gnu.substr(0, 99), "g") +
        tar_entry("PaxHeader", pax_record("mtime", "1.5") + pax_record("path", pax), 'x') +
        tar_entry("short", "p") + tar_entry("global", pax_record("comment", "c"), 'g') +
        tar_entry("last", "l") + tar_end();
    auto const written = extract(archive);
    ASSERT_TRUE(written) << written.error().what();
    EXPECT_THAT(*written, ElementsAre(Pair(gnu, 1), Pair(pax, 1), Pair("last", 1)));
    EXPECT_EQ(content(root / "target" / pax), "p");
}

TEST_F(ExtractionTest, RefusesNamesThatLeadElsewhere) {  // R-CLI-11
    for (std::string const name :
         {"../out", "a/../../out", "/tmp/tinkxx-out", "a//b", "a/./b", "..", "a/..", "a\nb"}) {
        expect_refused(tar_entry("good", "g") + tar_entry(name, "x") + tar_end(), "has the name");
    }
    expect_refused(
        tar_entry("p", pax_record("path", "../../out"), 'x') + tar_entry("a", "x") + tar_end(),
        "leads out of the folder");
    expect_refused(
        tar_entry("l", std::string("/etc/out\0", 9), 'L') + tar_entry("a", "x") + tar_end(),
        "absolute");
    expect_refused(tar_entry("../out/", "", '5') + tar_end(), "has the name");
    EXPECT_FALSE(std::filesystem::exists(root.parent_path() / "out"));
}

TEST_F(ExtractionTest, RefusesWhatIsNeitherFileNorFolder) {  // R-CLI-11
    expect_refused(tar_entry("a", "", '2', "/etc/passwd") + tar_end(), "a symbolic link");
    expect_refused(tar_entry("a", "", '1', "b") + tar_end(), "a hard link");
    expect_refused(tar_entry("a", "", '3') + tar_end(), "a device");
    expect_refused(tar_entry("a", "", '4') + tar_end(), "a device");
    expect_refused(tar_entry("a", "", '6') + tar_end(), "a pipe");
    expect_refused(tar_entry("a", "", 'S') + tar_end(), "neither a file nor a folder");
    expect_refused(tar_entry("l", "target\0", 'K') + tar_entry("a", "", '2', "x") + tar_end(),
                   "a symbolic link");
    expect_refused(tar_entry("p", pax_record("GNU.sparse.major", "1"), 'x') + tar_end(), "holes");
}

TEST_F(ExtractionTest, RefusesToWriteAFileTwice) {  // R-CLI-11
    for (auto const& archive : {tar_entry("a", "1") + tar_entry("a", "2") + tar_end(),
                                tar_entry("a", "1") + tar_entry("a/b", "2") + tar_end(),
                                tar_entry("a/b", "1") + tar_entry("a", "2") + tar_end()}) {
        ASSERT_FALSE(extract(archive));
        EXPECT_THAT(listing(), ElementsAre("archive"));
    }
}

TEST_F(ExtractionTest, RefusesWhatIsCutShortOrBroken) {  // R-CLI-11
    auto const whole = tar_entry("a", std::string(2000, 'x')) + tar_end();
    for (std::size_t const size : {0, 100, 512, 1000, 2048, 2560, 3072}) {
        expect_refused(whole.substr(0, size), "ends before its end mark");
    }
    auto wrong = whole;
    wrong[0] = 'b';
    expect_refused(wrong, "checksum");
    expect_refused(tar_entry("a", "x") + std::string(512, '\0') + tar_entry("b", "y"),
                   "goes on after its end");
    auto const packed = gzip(whole);
    for (std::size_t const size : {std::size_t{10}, packed.size() / 2, packed.size() - 1}) {
        auto const outcome = extract(packed.substr(0, size));
        ASSERT_FALSE(outcome);
        EXPECT_THAT(listing(), ElementsAre("archive"));
    }
    expect_refused("\x1f\x8bnonsense that is long enough to be looked at", "gzip");
    expect_refused("<html>502 Bad Gateway</html>" + std::string(1000, ' '), "checksum");
    expect_refused(tar_entry("p", "999999 path=x\n", 'x') + tar_end(), "pax record");
}

TEST_F(ExtractionTest, RefusesMoreThanItMayHold) {  // R-CLI-11
    TarLimits const limits{.most_bytes = 1000, .most_entries = 3};
    expect_refused(
        tar_entry("a", std::string(600, 'x')) + tar_entry("b", std::string(600, 'x')) + tar_end(),
        "more than 1000 bytes", limits);
    // Refused by its header, before a byte is written.
    expect_refused(tar_entry("a", "", '0', "", std::int64_t{1} << 32), "more than 1000 bytes",
                   limits);
    expect_refused(tar_entry("a", "") + tar_entry("b", "") + tar_entry("c", "") +
                       tar_entry("d", "") + tar_end(),
                   "more than 3 entries", limits);
    expect_refused(tar_entry("l", std::string(70'000, 'n'), 'L') + tar_end(), "64 KiB");
    // A bomb: ten megabytes of zeros in ten kilobytes.
    expect_refused(gzip(tar_entry("a", std::string(10'000'000, '\0')) + tar_end()),
                   "more than 1000 bytes", limits);
}

TEST_F(ExtractionTest, WritesIntoNoFolderThatIsThere) {  // R-CLI-11
    std::filesystem::create_directory(root / "target");
    put(root / "target/mine", "m");
    EXPECT_FALSE(extract(tar_entry("a", "x") + tar_end()));
    EXPECT_THAT(listing(), ElementsAre("archive", "target", "target/mine"));
}

}  // namespace
}  // namespace tinkxx::files
