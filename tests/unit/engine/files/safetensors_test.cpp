#include "engine/files/safetensors.hpp"

#include "engine/files/atomic_write.hpp"
#include "engine/files/safetensors_writer.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

namespace tinkxx::engine {
namespace {

namespace fs = std::filesystem;

/// A file with the given header text and `data_bytes` zero bytes.
std::vector<std::byte> file_of(std::string const& header, std::size_t data_bytes,
                               std::optional<std::uint64_t> claimed = std::nullopt) {
    std::vector<std::byte> file(8 + header.size() + data_bytes);
    auto const length = claimed.value_or(header.size());
    for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<std::byte>(length >> 8 * i & 0xffU);
    std::memcpy(file.data() + 8, header.data(), header.size());
    return file;
}

std::string refusal(std::string const& header, std::size_t data_bytes) {
    auto const result = parse_safetensors(file_of(header, data_bytes));
    return result ? "accepted" : result.error().what();
}

std::string tensor(std::string const& dtype, std::string const& shape, std::string const& offsets) {
    return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
           "}";
}

TEST(Safetensors, AreReadAsTheyWereWritten) {
    std::vector<float> const a{1.0F, -2.0F, 3.5F, 0.0F, 1e-30F, 7.0F};
    std::vector<std::uint16_t> const b{0x3f80, 0xc000};
    std::vector<TensorOut> const tensors{
        {.name = "a", .shape = {2, 3}, .bytes = std::as_bytes(std::span{a})},
        {.name = "b", .dtype = DType::bf16, .shape = {2}, .bytes = std::as_bytes(std::span{b})},
        {.name = "none", .shape = {0, 4}},
    };
    auto const path = fs::path(testing::TempDir()) / "round_trip.safetensors";
    ASSERT_TRUE(write_safetensors(path, tensors, {{"format", "pt"}}));
    auto const file = SafetensorsFile::open(path);
    ASSERT_TRUE(file) << file.error().what();
    EXPECT_EQ(file->tensors().size(), 3U);
    EXPECT_EQ(file->tensors().at("a").shape, (std::vector<std::uint64_t>{2, 3}));
    EXPECT_EQ(widen_tensor(file->tensors().at("a"), "a").value(), a);
    EXPECT_EQ(widen_tensor(file->tensors().at("b"), "b").value(),
              (std::vector<float>{1.0F, -2.0F}));
    EXPECT_EQ(file->tensors().at("none").count(), 0U);
    fs::remove(path);
}

TEST(Safetensors, WidenHalvesExactly) {
    std::vector<std::uint16_t> const halves{0x0000, 0x8000, 0x3c00, 0xc000, 0x7bff, 0x0001, 0x0400};
    TensorView const view{
        .dtype = DType::f16, .shape = {7}, .bytes = std::as_bytes(std::span{halves})};
    auto const values = widen_tensor(view, "x").value();
    EXPECT_EQ(values, (std::vector<float>{0.0F, -0.0F, 1.0F, -2.0F, 65504.0F, 0x1p-24F, 0x1p-14F}));
}

TEST(Safetensors, ClaimMoreThanTheyHave) {
    // A header of 4 GB in a file of 1 KB.
    auto const huge = parse_safetensors(file_of("{}", 1000, std::uint64_t{4} << 30U));
    ASSERT_FALSE(huge);
    EXPECT_EQ(huge.error().field(), "header");
    // Data of 4 GB in a file of 1 KB.
    EXPECT_NE(refusal(R"({"x":)" + tensor("F32", "[1073741824]", "[0,4294967296]") + "}", 900)
                  .find("leave the 900 bytes"),
              std::string::npos);
    for (std::uint64_t const length : {~std::uint64_t{0}, ~std::uint64_t{0} - 8}) {
        EXPECT_FALSE(parse_safetensors(file_of("{}", 8, length)));
    }
}

TEST(Safetensors, MayBeWrittenPieceByPiece) {
    std::vector<float> const a{1.0F, -2.0F, 3.5F, 0.0F, 1e-30F, 7.0F};
    auto const bytes = std::as_bytes(std::span{a});
    TensorOut const whole{.name = "a", .shape = {2, 3}, .bytes = bytes};
    TensorOut const pieces{.name = "a", .shape = {2, 3}, .stream = [&](ByteSink const& sink) {
                               sink(bytes.first(7));
                               sink(bytes.subspan(7));
                           }};
    auto const folder = fs::path(testing::TempDir());
    ASSERT_TRUE(write_safetensors(folder / "whole.safetensors", {&whole, 1}, {}));
    ASSERT_TRUE(write_safetensors(folder / "pieces.safetensors", {&pieces, 1}, {}));
    EXPECT_EQ(read_text(folder / "whole.safetensors", 1000).value(),
              read_text(folder / "pieces.safetensors", 1000).value());
}

TEST(Safetensors, WithNaNOrInfinityAreNotWritten) {
    auto const path = fs::path(testing::TempDir()) / "finite.safetensors";
    ASSERT_TRUE(write_file(path, "older"));
    for (auto const bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        std::vector<float> const a{1.0F, bad, 3.0F};
        auto const bytes = std::as_bytes(std::span{a});
        // However the elements are cut.
        for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
            TensorOut const tensor{.name = "a", .shape = {3}, .stream = [&](ByteSink const& sink) {
                                       sink(bytes.first(cut));
                                       sink(bytes.subspan(cut));
                                   }};
            auto const written = write_safetensors(path, {&tensor, 1}, {});
            ASSERT_FALSE(written) << cut;
            EXPECT_EQ(written.error().field(), "a");
        }
    }
    EXPECT_EQ(read_text(path, 1000).value(), "older");
    fs::remove(path);
}

TEST(Safetensors, CutShortAreRefused) {
    std::vector<float> const a{1.0F, 2.0F};
    std::vector<TensorOut> const tensors{
        {.name = "a", .shape = {2}, .bytes = std::as_bytes(std::span{a})}};
    auto const header = safetensors_header(tensors, {});
    std::vector<std::byte> whole(header.size() + 8);
    std::memcpy(whole.data(), header.data(), header.size());
    ASSERT_TRUE(parse_safetensors(whole));
    for (std::size_t length = 0; length < whole.size(); ++length) {
        EXPECT_FALSE(parse_safetensors(std::span{whole}.first(length))) << length;
    }
}

TEST(Safetensors, OverlappingOrWithHolesAreRefused) {
    auto const two = [](std::string const& a, std::string const& b) {
        return R"({"a":)" + tensor("F32", "[2]", a) + R"(,"b":)" + tensor("F32", "[2]", b) + "}";
    };
    EXPECT_EQ(refusal(two("[0,8]", "[8,16]"), 16), "accepted");
    EXPECT_NE(refusal(two("[0,8]", "[4,12]"), 12).find("overlaps"), std::string::npos);
    EXPECT_NE(refusal(two("[0,8]", "[0,8]"), 8).find("overlaps"), std::string::npos);
    EXPECT_NE(refusal(two("[0,8]", "[12,20]"), 20).find("no tensor"), std::string::npos);
    EXPECT_NE(refusal(two("[0,8]", "[8,16]"), 20).find("no tensor"), std::string::npos);
}

TEST(Safetensors, WithNonsenseInTheHeaderAreRefused) {
    std::vector<std::string> const bad{
        "",
        "[]",
        "{",
        R"({"x":3})",
        R"({"x":)" + tensor("F31", "[2]", "[0,8]") + "}",
        R"({"x":)" + tensor("F32", "[3]", "[0,8]") + "}",
        R"({"x":)" + tensor("F32", "[-2]", "[0,8]") + "}",
        R"({"x":)" + tensor("F32", "[2.0]", "[0,8]") + "}",
        R"({"x":)" + tensor("F32", "2", "[0,8]") + "}",
        R"({"x":)" + tensor("F32", "[2]", "[8,0]") + "}",
        R"({"x":)" + tensor("F32", "[2]", "[0,8,8]") + "}",
        R"({"x":)" + tensor("F32", "[2]", "[0]") + "}",
        R"({"x":)" + tensor("F32", "[4611686018427387906]", "[0,8]") + "}",
        R"({"x":)" + tensor("F32", "[4294967296,4294967298]", "[0,8]") + "}",
        R"({"x":{"dtype":"F32","shape":[2]}})",
        R"({"x":{"shape":[2],"data_offsets":[0,8]}})",
        R"({"x":)" + tensor("F32", "[2]", "[0,8]") + R"(,"x":)" + tensor("F32", "[1]", "[0,4]") +
            "}",
        std::string(5000, '['),
    };
    for (auto const& header : bad) {
        EXPECT_FALSE(parse_safetensors(file_of(header, 8))) << header.substr(0, 80);
    }
}

TEST(Safetensors, WithNumbersThatAreNoneAreRefusedByName) {
    for (auto const value :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        std::vector<float> const a{1.0F, value};
        TensorView const view{.shape = {2}, .bytes = std::as_bytes(std::span{a})};
        auto const result = widen_tensor(view, "model.norm.weight");
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().field(), "model.norm.weight");
    }
    std::vector<std::uint16_t> const half{0x7c00};
    EXPECT_FALSE(check_finite(
        {.dtype = DType::f16, .shape = {1}, .bytes = std::as_bytes(std::span{half})}, "x"));
    std::vector<std::uint16_t> const brain{0xff80};
    EXPECT_FALSE(check_finite(
        {.dtype = DType::bf16, .shape = {1}, .bytes = std::as_bytes(std::span{brain})}, "x"));
    EXPECT_TRUE(check_finite(
        {.dtype = DType::bf16, .shape = {1}, .bytes = std::as_bytes(std::span{half})}, "x"));
}

TEST(TensorIndex, NamesPlainFilesOfItsOwnFolderOnly) {
    auto const accepted = [](std::string const& file) {
        return parse_index(R"({"weight_map":{"x":")" + file + R"("}})").has_value();
    };
    EXPECT_TRUE(accepted("model-00001-of-00002.safetensors"));
    EXPECT_FALSE(accepted("../model.safetensors"));
    EXPECT_FALSE(accepted("/etc/model.safetensors"));
    EXPECT_FALSE(accepted("sub/model.safetensors"));
    EXPECT_FALSE(accepted("..safetensors"));
    EXPECT_FALSE(accepted("model.bin"));
    EXPECT_FALSE(accepted("model.safetensors.index.json"));  // an index of itself
    EXPECT_FALSE(accepted(""));
    EXPECT_FALSE(parse_index("{}"));
    EXPECT_FALSE(parse_index(R"({"weight_map":[]})"));
    EXPECT_FALSE(parse_index(R"({"weight_map":{"x":1}})"));
}

class TensorFolders : public testing::Test {
protected:
    TensorFolders() {
        fs::remove_all(folder);
        fs::create_directories(folder);
    }
    ~TensorFolders() override { fs::remove_all(folder); }

    void put(std::string const& file, std::vector<std::string> const& names) {
        std::array<float, 1> const one{1.0F};
        std::vector<TensorOut> tensors;
        for (auto const& name : names) {
            tensors.push_back({.name = name, .shape = {1}, .bytes = std::as_bytes(std::span{one})});
        }
        ASSERT_TRUE(write_safetensors(folder / file, tensors, {}));
    }
    void index(std::string const& map) {
        ASSERT_TRUE(
            write_file(folder / "model.safetensors.index.json", R"({"weight_map":{)" + map + "}}"));
    }

    fs::path folder =
        fs::path(testing::TempDir()) /
        (std::string("folder_") + testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(TensorFolders, AreReadWithoutAnIndex) {
    put("b.safetensors", {"x"});
    put("a.safetensors", {"y", "z"});
    put("adapter_model.safetensors", {"x"});
    EXPECT_EQ(TensorFolder::open(folder).value().tensors().size(), 3U);
}

TEST_F(TensorFolders, AreReadAsTheIndexSays) {
    put("a.safetensors", {"x", "y"});
    put("b.safetensors", {"x", "z"});
    index(R"("x":"b.safetensors","y":"a.safetensors")");
    auto const tensors = TensorFolder::open(folder).value();
    EXPECT_EQ(tensors.tensors().size(), 2U);
}

TEST_F(TensorFolders, MustHoldWhatTheIndexNames) {
    put("a.safetensors", {"x"});
    index(R"("x":"a.safetensors","y":"a.safetensors")");
    auto const missing = TensorFolder::open(folder);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().field(), "y");
    index(R"("x":"b.safetensors")");
    EXPECT_FALSE(TensorFolder::open(folder));
}

TEST_F(TensorFolders, WithATensorInTwoFilesAreRefused) {
    put("a.safetensors", {"x"});
    put("b.safetensors", {"x"});
    auto const twice = TensorFolder::open(folder);
    ASSERT_FALSE(twice);
    EXPECT_EQ(twice.error().field(), "x");
}

TEST_F(TensorFolders, ThatLeadInACircleAreRefused) {
    fs::create_symlink("model.safetensors.index.json", folder / "model.safetensors.index.json");
    EXPECT_FALSE(TensorFolder::open(folder));
    fs::remove(folder / "model.safetensors.index.json");
    fs::create_symlink("a.safetensors", folder / "a.safetensors");
    EXPECT_FALSE(TensorFolder::open(folder));
}

TEST_F(TensorFolders, WithoutWeightsAreRefused) {
    EXPECT_FALSE(TensorFolder::open(folder));
    EXPECT_FALSE(TensorFolder::open(folder / "absent"));
    fs::create_directories(folder / "a.safetensors");
    EXPECT_FALSE(TensorFolder::open(folder));
}

}  // namespace
}  // namespace tinkxx::engine
