#include "wire/values/tensor.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace tinkxx::wire {

struct Holder {
    TensorData tensor{};
};
static void read(JsonIn const& in, Holder& out) { out.tensor = in.required<TensorData>("tensor"); }

namespace {

Result<Holder> decode_tensor(std::string_view tensor) {
    return decode_json<Holder>("t", R"({"tensor": )" + std::string{tensor} + "}");
}

std::string encode(TensorData const& tensor) {
    std::string out;
    JsonOut json{out};
    write(json, tensor);
    return out;
}

TEST(Tensor, IsWrittenFlatWithItsTypeAndShape) {  // R-WIRE-02
    EXPECT_EQ(encode({.data = std::vector<std::int64_t>{5, -1, 7, 8}, .shape = {{2, 2}}}),
              R"({"data":[5,-1,7,8],"dtype":"int64","shape":[2,2]})");
    EXPECT_EQ(encode({.data = std::vector<float>{0.5F, 0.1F}}),
              R"({"data":[0.5,0.1],"dtype":"float32"})");
    EXPECT_EQ(
        encode({.data = std::vector<std::int64_t>{5, 9},
                .shape = {{2, 8}},
                .sparse_crow_indices = {{0, 1, 2}},
                .sparse_col_indices = {{0, 3}}}),
        R"({"data":[5,9],"dtype":"int64","shape":[2,8],"sparse_crow_indices":[0,1,2],"sparse_col_indices":[0,3]})");
}

TEST(Tensor, GoesRound) {  // R-WIRE-02, R-TEST-03
    EXPECT_TRUE(rc::check([](std::vector<std::int64_t> const& ints) {
        TensorData const tensor{.data = ints,
                                .shape = {{1, static_cast<std::int64_t>(ints.size())}}};
        RC_ASSERT(decode_tensor(encode(tensor)).value().tensor == tensor);
    }));
    TensorData const sparse{.data = std::vector<float>{1, 2, 3},
                            .shape = {{3, 4}},
                            .sparse_crow_indices = {{0, 2, 2, 3}},
                            .sparse_col_indices = {{0, 3, 1}}};
    EXPECT_EQ(decode_tensor(encode(sparse)).value().tensor, sparse);
}

TEST(Tensor, RefusesPartsThatDoNotFit) {  // R-WIRE-05
    for (
        auto const* json : {
            R"({"data": [1], "dtype": "int32"})",
            R"({"data": [1]})",
            R"({"dtype": "int64"})",
            R"({"data": [1.5], "dtype": "int64"})",
            R"({"data": [1, 2], "dtype": "int64", "shape": [3]})",
            R"({"data": [], "dtype": "int64", "shape": [-1, 0]})",
            R"({"data": [], "dtype": "int64", "shape": [4294967296, 4294967296]})",
            R"({"data": [1], "dtype": "int64", "shape": [1, 1], "sparse_crow_indices": [0, 1]})",
            R"({"data": [1], "dtype": "int64", "shape": [1, 1], "sparse_col_indices": [0]})",
            R"({"data": [1], "dtype": "int64", "sparse_crow_indices": [0, 1], "sparse_col_indices": [0]})",
            R"({"data": [1], "dtype": "int64", "shape": [1], "sparse_crow_indices": [0, 1], "sparse_col_indices": [0]})",
            R"({"data": [1], "dtype": "int64", "shape": [2, 1], "sparse_crow_indices": [0, 1], "sparse_col_indices": [0]})",
            R"({"data": [1], "dtype": "int64", "shape": [1, 1], "sparse_crow_indices": [1, 1], "sparse_col_indices": [0]})",
            R"({"data": [1], "dtype": "int64", "shape": [1, 1], "sparse_crow_indices": [0, 2], "sparse_col_indices": [0]})",
            R"({"data": [1], "dtype": "int64", "shape": [1, 1], "sparse_crow_indices": [0, 1], "sparse_col_indices": [1]})",
            R"({"data": [1], "dtype": "int64", "shape": [1, 1], "sparse_crow_indices": [0, 1], "sparse_col_indices": [-1]})",
            R"({"data": [1], "dtype": "int64", "shape": [1, 1], "sparse_crow_indices": [0, 1], "sparse_col_indices": [0, 0]})",
            R"({"data": [1], "dtype": "int64", "shape": [2, 1], "sparse_crow_indices": [0, 2, 1], "sparse_col_indices": [0]})",
            R"({"data": [], "dtype": "int64", "shape": [-1, 1], "sparse_crow_indices": [], "sparse_col_indices": []})",
            R"({"data": [], "dtype": "int64", "shape": [9223372036854775807, 1], "sparse_crow_indices": [], "sparse_col_indices": []})",
        }) {
        auto const result = decode_tensor(json);
        ASSERT_FALSE(result.has_value()) << json;
        EXPECT_TRUE(result.error().field().starts_with("/tensor")) << result.error().what();
    }
}

}  // namespace
}  // namespace tinkxx::wire
