#include "net/http/content_decoder.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <zlib.h>
#include <zstd.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace tinkxx::net {
namespace {

using Step = ContentDecoder::Step;

constexpr int gzip_bits = 15 + 16;
constexpr int zlib_bits = 15;
constexpr int raw_bits = -15;

std::string deflated(std::string_view text, int window_bits) {
    z_stream stream{};
    if (::deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        throw std::runtime_error{"deflateInit2"};
    }
    std::string out(::deflateBound(&stream, text.size()) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    ::deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    ::deflateEnd(&stream);
    return out;
}

std::string zstd_encoded(std::string_view text) {
    std::string out(::ZSTD_compressBound(text.size()), '\0');
    out.resize(::ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
    return out;
}

struct Outcome {
    std::string text{};
    bool error{false};
    bool complete{false};
    std::string error_text{};
    std::size_t largest_piece{0};
};

/// Feeds `encoded` in pieces of `chunk` bytes, each in memory of its own, so that a sanitizer
/// sees any read past it.
Outcome decode(std::string_view encoding, std::string_view encoded, std::size_t chunk = 1000) {
    bool known = false;
    auto const decoder = make_content_decoder(encoding, known);
    Outcome outcome;
    if (!known || decoder == nullptr) throw std::runtime_error{"no decoder"};
    for (std::size_t at = 0; at < encoded.size() && !outcome.error; at += chunk) {
        auto const part = encoded.substr(at, chunk);
        std::vector<char> const bytes{part.begin(), part.end()};
        decoder->feed(bytes);
        for (;;) {
            auto const step = decoder->next();
            if (step == Step::need_input) break;
            if (step == Step::error) {
                outcome.error = true;
                break;
            }
            outcome.largest_piece = std::max(outcome.largest_piece, decoder->output().size());
            outcome.text.append(decoder->output().data(), decoder->output().size());
        }
    }
    outcome.complete = decoder->complete();
    outcome.error_text = decoder->error_text();
    return outcome;
}

std::string sample_text(std::size_t bytes) {
    std::string text;
    for (unsigned i = 0; text.size() < bytes; ++i) text += std::to_string(i * i) + ' ';
    text.resize(bytes);
    return text;
}

TEST(ContentDecoder, UndoesEveryEncodingHoweverTheBytesArrive) {
    EXPECT_TRUE(rc::check([] {
        auto const text = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
        auto const repeats = *rc::gen::inRange(1, 50);
        auto const chunk = *rc::gen::inRange<std::size_t>(1, 70);
        std::string whole;
        for (int i = 0; i < repeats; ++i) whole += text;
        for (auto const& [name, encoded] : std::vector<std::pair<std::string, std::string>>{
                 {"gzip", deflated(whole, gzip_bits)},
                 {"deflate", deflated(whole, zlib_bits)},
                 {"deflate", deflated(whole, raw_bits)},
                 {"zstd", zstd_encoded(whole)},
                 {"gzip, zstd", zstd_encoded(deflated(whole, gzip_bits))},
                 {"zstd,deflate,gzip",
                  deflated(deflated(zstd_encoded(whole), zlib_bits), gzip_bits)}}) {
            auto const outcome = decode(name, encoded, chunk);
            RC_ASSERT(!outcome.error);
            RC_ASSERT(outcome.complete);
            RC_ASSERT(outcome.text == whole);
        }
    }));
}

TEST(ContentDecoder, HandsOutLargeBodiesInBoundedPieces) {
    std::string const zeros(std::size_t{20} * 1024 * 1024, '\0');
    for (auto const& [name, encoded] : std::vector<std::pair<std::string, std::string>>{
             {"gzip", deflated(zeros, gzip_bits)},
             {"zstd", zstd_encoded(zeros)},
             {"gzip, gzip", deflated(deflated(zeros, gzip_bits), gzip_bits)}}) {
        auto const outcome = decode(name, encoded, encoded.size());
        EXPECT_TRUE(outcome.complete) << name;
        EXPECT_EQ(outcome.text.size(), zeros.size()) << name;
        EXPECT_LE(outcome.largest_piece, 64U * 1024) << name;
    }
}

TEST(ContentDecoder, ReportsABodyThatWasCutShort) {
    auto const text = sample_text(5000);
    for (auto const& [name, encoded] : std::vector<std::pair<std::string, std::string>>{
             {"gzip", deflated(text, gzip_bits)},
             {"deflate", deflated(text, zlib_bits)},
             {"deflate", deflated(text, raw_bits)},
             {"zstd", zstd_encoded(text)},
             {"gzip, zstd", zstd_encoded(deflated(text, gzip_bits))}}) {
        for (std::size_t const cut : {std::size_t{1}, encoded.size() / 2, encoded.size() - 1}) {
            auto const outcome = decode(name, std::string_view{encoded}.substr(0, cut));
            EXPECT_FALSE(outcome.error) << name << ' ' << cut;
            EXPECT_FALSE(outcome.complete) << name << ' ' << cut;
        }
    }
}

TEST(ContentDecoder, TakesAnEmptyBodyForComplete) {
    for (auto const* const name : {"gzip", "deflate", "zstd", "gzip, zstd"}) {
        EXPECT_TRUE(decode(name, "").complete) << name;
    }
}

TEST(ContentDecoder, ReportsDamage) {
    auto const text = sample_text(5000);
    auto gzip = deflated(text, gzip_bits);
    gzip[gzip.size() - 6] = static_cast<char>(gzip[gzip.size() - 6] ^ 1);  // its check sum
    auto const damaged = decode("gzip", gzip);
    EXPECT_TRUE(damaged.error);
    EXPECT_FALSE(damaged.complete);
    EXPECT_EQ(damaged.error_text, "the body is not valid gzip: incorrect data check");

    for (auto const* const name : {"gzip", "zstd", "deflate", "gzip, zstd"}) {
        auto const outcome = decode(name, R"({"this": "is not compressed at all"})");
        EXPECT_TRUE(outcome.error) << name;
        EXPECT_FALSE(outcome.error_text.empty()) << name;
    }
}

TEST(ContentDecoder, StaysInErrorAfterAnError) {
    bool known = false;
    auto const decoder = make_content_decoder("gzip", known);
    std::string const nonsense = "nonsense, and more of it";
    decoder->feed(nonsense);
    EXPECT_EQ(decoder->next(), Step::error);
    auto const good = deflated("text", gzip_bits);
    decoder->feed(good);
    EXPECT_EQ(decoder->next(), Step::error);
    EXPECT_FALSE(decoder->complete());
    EXPECT_TRUE(decoder->output().empty());
}

TEST(ContentDecoder, JoinsGzipMembersAndZstdFrames) {
    for (std::size_t const chunk : {std::size_t{1}, std::size_t{1000}}) {
        auto const gzip = decode(
            "gzip",
            deflated("one ", gzip_bits) + deflated("", gzip_bits) + deflated("two", gzip_bits),
            chunk);
        EXPECT_EQ(gzip.text, "one two");
        EXPECT_TRUE(gzip.complete);
        auto const zstd = decode("zstd", zstd_encoded("one ") + zstd_encoded("two"), chunk);
        EXPECT_EQ(zstd.text, "one two");
        EXPECT_TRUE(zstd.complete);
    }
    auto const cut = decode("gzip", deflated("one", gzip_bits) + "\x1f");
    EXPECT_FALSE(cut.error);
    EXPECT_FALSE(cut.complete);
}

TEST(ContentDecoder, AllowsZeroPaddingAfterGzipAndNothingElse) {
    auto const gzip = deflated("text", gzip_bits);
    auto const padded = decode("gzip", gzip + std::string(700, '\0'), 100);
    EXPECT_TRUE(padded.complete);
    EXPECT_EQ(padded.text, "text");

    EXPECT_TRUE(decode("gzip", gzip + "x").error);
    EXPECT_TRUE(decode("gzip", gzip + std::string(3, '\0') + "x").error);
    EXPECT_TRUE(decode("gzip", gzip + std::string(3, '\0') + gzip).error);
    EXPECT_TRUE(decode("deflate", deflated("text", zlib_bits) + "x").error);
    EXPECT_TRUE(decode("zstd", zstd_encoded("text") + "xxxx").error);
}

TEST(ContentDecoder, RefusesAZstdWindowThatClaimsTooMuchMemory) {
    auto const text = sample_text(100000);
    std::unique_ptr<ZSTD_CCtx, decltype(&::ZSTD_freeCCtx)> const context{::ZSTD_createCCtx(),
                                                                         &::ZSTD_freeCCtx};
    ::ZSTD_CCtx_setParameter(context.get(), ZSTD_c_windowLog, 27);
    std::string encoded(::ZSTD_compressBound(text.size()), '\0');
    ZSTD_inBuffer in{text.data(), text.size(), 0};
    ZSTD_outBuffer out{encoded.data(), encoded.size(), 0};
    // Without a known size zstd writes the window into the frame.
    ASSERT_NE(::ZSTD_compressStream2(context.get(), &out, &in, ZSTD_e_flush), std::size_t(-1));
    ASSERT_EQ(::ZSTD_compressStream2(context.get(), &out, &in, ZSTD_e_end), 0U);
    encoded.resize(out.pos);
    auto const outcome = decode("zstd", encoded);
    EXPECT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error_text, "the zstd body asks for a window of more than 8 MB");
}

TEST(MakeContentDecoder, KnowsItsNamesInAnyCase) {
    bool known = false;
    EXPECT_NE(make_content_decoder("GZip", known), nullptr);
    EXPECT_TRUE(known);
    EXPECT_NE(make_content_decoder(" x-gzip ", known), nullptr);
    EXPECT_NE(make_content_decoder("identity, zstd", known), nullptr);
    EXPECT_TRUE(known);
}

TEST(MakeContentDecoder, NeedsNoneForIdentity) {
    for (auto const* const name : {"", "identity", " Identity , identity", ","}) {
        bool known = false;
        EXPECT_EQ(make_content_decoder(name, known), nullptr) << name;
        EXPECT_TRUE(known) << name;
    }
}

TEST(MakeContentDecoder, SaysWhenAnEncodingIsUnknownOrTheListTooLong) {
    for (auto const* const name : {"br", "gzip, br", "gzip gzip", "gzip,gzip,gzip,gzip,gzip"}) {
        bool known = true;
        EXPECT_EQ(make_content_decoder(name, known), nullptr) << name;
        EXPECT_FALSE(known) << name;
    }
    bool known = false;
    EXPECT_NE(make_content_decoder("gzip,gzip,gzip,gzip", known), nullptr);
    EXPECT_TRUE(known);
}

}  // namespace
}  // namespace tinkxx::net
