// Integers that come from outside: what is within the range is that number, and anything else is an
// error that names the place, the value and the range.
#include "wire/server/requests.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <protozero/pbf_writer.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx::wire::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr auto int64_max = std::numeric_limits<std::int64_t>::max();
constexpr auto int64_min = std::numeric_limits<std::int64_t>::min();
constexpr auto int32_max = std::int64_t{std::numeric_limits<std::int32_t>::max()};
constexpr auto double_max = (std::int64_t{1} << 53U) - 1;

/// A member of a request, and what its decoder makes of a body.
struct Member {
    std::string operation;
    std::string place;
    std::string before;  ///< of the body, up to the value
    std::string behind;
    std::function<Result<std::int64_t>(std::string const&)> decode;
    std::int64_t least;
    std::int64_t most;
};

template <class Decode, class Pick>
auto picked(Decode decode, Pick pick) {
    return [=](std::string const& body) -> Result<std::int64_t> {
        auto decoded = decode(body);
        if (!decoded) return decoded.error();
        return std::int64_t{pick(*decoded)};
    };
}

std::vector<Member> members() {
    std::vector<Member> all;
    auto const add = [&](std::string operation, std::string place, std::string before,
                         std::string behind, auto decode, std::int64_t least, std::int64_t most) {
        all.push_back({std::move(operation), std::move(place), std::move(before), std::move(behind),
                       decode, least, most});
    };
    // Samples.
    std::string const prompt = R"({"prompt":{"chunks":[{"tokens":[1]}]},)";
    auto const sample = [](std::string const& body) { return decode_sample("asample", body); };
    auto const option = [&](std::string const& name, auto pick, std::int64_t least,
                            std::int64_t most) {
        add("asample", "/" + name, prompt + "\"" + name + "\":", "}", picked(sample, pick), least,
            most);
    };
    auto const param = [&](std::string const& name, auto pick, std::int64_t least,
                           std::int64_t most) {
        add("asample", "/sampling_params/" + name,
            prompt + R"("sampling_params":{")" + name + "\":", "}}", picked(sample, pick), least,
            most);
    };
    option(
        "seq_id", [](Sample const& s) { return *s.seq_id; }, 0, double_max);
    option(
        "num_samples", [](Sample const& s) { return s.options.num_samples; }, 0, int32_max);
    option(
        "topk_prompt_logprobs", [](Sample const& s) { return s.options.topk_prompt_logprobs; }, 0,
        int32_max);
    option(
        "topk_sample_logprobs", [](Sample const& s) { return s.options.topk_sample_logprobs; }, 0,
        int32_max);
    option(
        "prompt_alt_tokens_k", [](Sample const& s) { return s.options.prompt_alt_tokens_k; }, 0,
        int32_max);
    option(
        "prompt_logprobs_last_n", [](Sample const& s) { return *s.options.prompt_logprobs_last_n; },
        0, int32_max);
    param(
        "max_tokens", [](Sample const& s) { return *s.params.max_tokens; }, 0, int32_max);
    param(
        "top_k", [](Sample const& s) { return s.params.top_k; }, -1, int32_max);
    add("asample", "/prompt/chunks/0/expected_tokens",
        R"({"prompt":{"chunks":[{"type":"image","data":"","format":"png","expected_tokens":)",
        "}]}}",
        picked(sample,
               [](Sample const& s) {
                   return *std::get<ImageChunk>(s.prompt.chunks.at(0)).expected_tokens;
               }),
        0, int32_max);
    add("asample", "/prompt/chunks/0/tokens/0", R"({"prompt":{"chunks":[{"tokens":[)", "]}]}}",
        picked(sample, [](Sample const& s) { return s.prompt.to_tokens().at(0); }), -int32_max - 1,
        int32_max);
    add("asample", "/sampling_params/stop/0", prompt + R"("sampling_params":{"stop":[)", "]}}",
        picked(sample,
               [](Sample const& s) {
                   return std::get<std::vector<Token>>(s.params.stop.value()).at(0);
               }),
        -int32_max - 1, int32_max);
    // Sessions.
    add("create_sampling_session", "/sampling_session_seq_id",
        R"({"session_id":"s","sampling_session_seq_id":)", "}",
        picked(decode_create_sampling_session,
               [](auto const& made) { return made.sampling_session_seq_id; }),
        0, double_max);
    std::string const target = R"({"target":{"sampling_session_id":"s")";
    add("retrieve_futures", "/target/cloned_sampler_id", target + R"(,"cloned_sampler_id":)", "}}",
        picked(decode_retrieve_futures, [](auto const& ask) { return ask.cloned_sampler_id; }), 0,
        double_max);
    add("retrieve_futures", "/prev_cursor", target + R"(},"prev_cursor":)", "}",
        picked(decode_retrieve_futures, [](auto const& ask) { return ask.prev_cursor; }), 0,
        double_max);
    add("sessions/search", "/limit", R"({"limit":)", "}",
        picked(decode_search_sessions, [](auto const& search) { return search.limit; }), 1, 200);
    // Training.
    std::string const model = R"({"session_id":"s","base_model":"b","model_seq_id":)";
    add("create_model", "/model_seq_id", model, "}",
        picked(decode_create_model, [](auto const& made) { return made.model_seq_id; }), 0,
        double_max);
    add("create_model", "/lora_config/rank", model + R"(1,"lora_config":{"rank":)", "}}",
        picked(decode_create_model, [](auto const& made) { return made.lora.rank; }), 0, int32_max);
    add("create_model", "/lora_config/seed", model + R"(1,"lora_config":{"rank":1,"seed":)", "}}",
        picked(decode_create_model, [](auto const& made) { return *made.lora.seed; }), int64_min,
        int64_max);
    add("optim_step", "/seq_id", R"({"model_id":"m","seq_id":)", "}",
        picked(decode_optim_step, [](auto const& step) { return *step.seq_id; }), 0, double_max);
    auto const steps = [](std::string const& body) {
        return decode_forward_backward("forward_backward", body);
    };
    add("forward_backward", "/seq_id",
        R"({"forward_backward_input":{"data":[],"loss_fn":"ppo"},"model_id":"m","seq_id":)", "}",
        picked(steps, [](auto const& step) { return *step.seq_id; }), 0, double_max);
    auto const save = [](std::string const& body) { return decode_save("save_weights", body); };
    add("save_weights", "/seq_id", R"({"model_id":"m","seq_id":)", "}",
        picked(save, [](Save const& one) { return *one.seq_id; }), 0, double_max);
    add("save_weights", "/sampling_session_seq_id", R"({"model_id":"m","sampling_session_seq_id":)",
        "}", picked(save, [](Save const& one) { return *one.sampling_session_seq_id; }), 0,
        double_max);
    add("save_weights", "/ttl_seconds", R"({"model_id":"m","ttl_seconds":)", "}",
        picked(save, [](Save const& one) { return *one.ttl_seconds; }), int64_min, int64_max);
    std::string const load = R"({"path":"p","optimizer":true,)";
    add("load_weights", "/seq_id", load + R"("seq_id":)", "}",
        picked(decode_load_weights, [](auto const& one) { return *one.seq_id; }), 0, double_max);
    add("load_weights", "/model_seq_id", load + R"("model_seq_id":)", "}",
        picked(decode_load_weights, [](auto const& one) { return *one.model_seq_id; }), 0,
        double_max);
    add("copy_weights", "/ttl_seconds", R"({"source_path":"p","ttl_seconds":)", "}",
        picked(decode_copy_weights, [](auto const& one) { return *one.ttl_seconds; }), int64_min,
        int64_max);
    add("ttl", "/ttl_seconds", R"({"ttl_seconds":)", "}",
        picked(decode_ttl, [](Ttl const& one) { return *one.seconds; }), int64_min, int64_max);
    return all;
}

TEST(CodecRanges, JsonIntegersAreWithinTheirRangeOrRefusedByName) {
    for (auto const& one : members()) {
        auto const given = [&](std::string const& value) {
            return one.decode(one.before + value + one.behind);
        };
        SCOPED_TRACE(one.operation + one.place);
        // What is in the range arrives, also as a whole float or as text.
        for (auto const number : {one.least, one.most, std::int64_t{1}, std::int64_t{100}}) {
            auto const text = std::to_string(number);
            for (auto const& written : {text, '"' + text + '"'}) {
                if (one.place == "/sampling_params/stop/0" && written != text) continue;
                auto const got = given(written);
                ASSERT_TRUE(got) << got.error().what();
                EXPECT_EQ(*got, number);
            }
        }
        EXPECT_EQ(given("1e2").value(), 100);
        EXPECT_EQ(given("100.0").value(), 100);
        // Anything else does not, and never as another number.
        std::vector<std::string> wrong{"18446744073709551616",
                                       "18446744073709551615",
                                       "9223372036854775808",
                                       "-9223372036854775809",
                                       "1e19",
                                       "1e308",
                                       "-1e308",
                                       "0.5",
                                       "-0.5",
                                       "1.5",
                                       "1e-300",
                                       "2147483648.5",
                                       "true",
                                       "[1]",
                                       "{}"};
        if (one.least > int64_min) {
            wrong.push_back(std::to_string(one.least - 1));
            wrong.push_back(std::to_string(int64_min));
        }
        if (one.most < int64_max) {
            wrong.push_back(std::to_string(one.most + 1));
            wrong.push_back(std::to_string(int64_max));
        }
        for (auto const& value : wrong) {
            auto const got = given(value);
            ASSERT_FALSE(got) << value << " became " << *got;
            EXPECT_EQ(got.error().kind(), ErrorKind::validation);
            EXPECT_EQ(got.error().field(), one.place) << value;
            EXPECT_FALSE(got.error().value().empty()) << value;
            EXPECT_THAT(got.error().what(),
                        AllOf(StartsWith(one.operation + ": " + one.place + " must be an integer "),
                              HasSubstr(", and is " + std::string{got.error().value()})));
            bool const whole = one.least == int64_min;
            bool const token = one.least == -int32_max - 1;
            EXPECT_THAT(got.error().what(),
                        HasSubstr(whole   ? "of 64 bits"
                                  : token ? "of 32 bits"
                                          : "from " + std::to_string(one.least) + " to " +
                                                std::to_string(one.most)));
        }
        // A number that no double holds is none of JSON's; there is no place to name but the byte.
        for (auto const* value : {"1e309", "-1e400", "1e99999999999999999999"}) {
            auto const got = given(value);
            ASSERT_FALSE(got) << value;
            EXPECT_THAT(got.error().what(), AllOf(HasSubstr("the body is no JSON that can be read"),
                                                  HasSubstr(" at byte ")));
        }
    }
}

TEST(CodecRanges, ASeedHas64BitsWithOrWithoutASign) {
    auto const seed = [](std::string const& value) {
        return decode_sample(
            "asample", R"({"prompt":{"chunks":[]},"sampling_params":{"seed":)" + value + "}}");
    };
    EXPECT_EQ(seed("18446744073709551615").value().params.seed,
              std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(seed("-1").value().params.seed, std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(seed("-9223372036854775808").value().params.seed, std::uint64_t{1} << 63U);
    for (auto const* wrong : {"18446744073709551616", "-9223372036854775809", "1e308", "0.5"}) {
        auto const got = seed(wrong);
        ASSERT_FALSE(got) << wrong;
        EXPECT_EQ(got.error().field(), "/sampling_params/seed");
    }
}

TEST(CodecRanges, ShapesOfJsonFitTheirElements) {
    auto const decode = [](std::string const& tensor) {
        return decode_forward_backward(
            "forward_backward",
            R"({"model_id":"m","forward_backward_input":{"loss_fn":"ppo","data":[{"model_input":)"
            R"({"chunks":[]},"loss_fn_inputs":{"weights":)" +
                tensor + "}}]}}");
    };
    auto const with = [](std::string const& shape) {
        return R"({"data":[1,2],"dtype":"float32","shape":)" + shape + "}";
    };
    for (auto const* right : {"[2]", "[1,2]", "[2,1,1]", "null"}) {
        EXPECT_TRUE(decode(with(right))) << right;
    }
    struct Wrong {
        char const* shape;
        char const* words;
    };
    for (auto const& [shape, words] : {
             Wrong{"[]", "2 elements in the shape []"},
             Wrong{"[3]", "2 elements in the shape [3]"},
             Wrong{"[-1,-2]", "the negative dimension -2 in the shape [-1, -2]"},
             Wrong{"[-9223372036854775808]", "the negative dimension -9223372036854775808"},
             Wrong{"[9223372036854775807]", "shape [9223372036854775807]"},
             // 2 in 64 bits, were it not for the ones that are lost.
             Wrong{"[4611686018427387905,2]", "shape [4611686018427387905, 2]"},
             Wrong{"[6148914691236517206,3]", "shape [6148914691236517206, 3]"},
             Wrong{"[9223372036854775807,2,2]", "shape [9223372036854775807, 2, 2]"},
             Wrong{"[4294967296,4294967296,0]", "shape [4294967296, 4294967296, 0]"},
             Wrong{"[9223372036854775808]", "an integer of 64 bits, and is 9223372036854775808"},
             Wrong{"[1e308]", "an integer of 64 bits, and is 1E308"},
             Wrong{"[0.5]", "an integer of 64 bits, and is 5E-1"},
         }) {
        auto const got = decode(with(shape));
        ASSERT_FALSE(got) << shape;
        EXPECT_THAT(got.error().what(), HasSubstr(words)) << shape;
        EXPECT_THAT(std::string{got.error().field()},
                    StartsWith("/forward_backward_input/data/0/loss_fn_inputs/weights"));
    }
    auto const csr = [](std::string const& shape, std::string const& rows,
                        std::string const& columns) {
        return R"({"data":[1],"dtype":"float32","shape":)" + shape + R"(,"sparse_crow_indices":)" +
               rows + R"(,"sparse_col_indices":)" + columns + "}";
    };
    EXPECT_TRUE(decode(csr("[1,9223372036854775807]", "[0,1]", "[9223372036854775806]")));
    for (auto const& tensor :
         {csr("[9223372036854775807,1]", "[0,1]", "[0]"), csr("[-1,1]", "[0,1]", "[0]"),
          csr("[1,-1]", "[0,1]", "[0]"), csr("[1,1]", "[0,9223372036854775807]", "[0]"),
          csr("[1,1]", "[-9223372036854775808,1]", "[0]"), csr("[1,1]", "[0,1]", "[-1]"),
          csr("[1,1]", "[0,1]", "[9223372036854775807]"),
          csr("[2,1]", "[0,9223372036854775807,1]", "[0]")}) {
        EXPECT_FALSE(decode(tensor)) << tensor;
    }
}

// --- protobuf -----------------------------------------------------------------------------------

std::string message(std::function<void(protozero::pbf_writer&)> const& fill) {
    std::string out;
    protozero::pbf_writer writer{out};
    fill(writer);
    return out;
}

TEST(CodecRanges, ProtobufIntegersAreWithinTheirRangeOrRefusedByName) {
    struct Field {
        std::string place;
        std::function<std::string(std::int64_t)> body;
        std::function<std::int64_t(ForwardBackward const&)> pick;
        std::int64_t most;
    };
    auto const in_datum = [](std::string const& part, protozero::pbf_tag_type tag) {
        return message([&](auto& out) {
            out.add_message(3, message([&](auto& datum) { datum.add_message(tag, part); }));
        });
    };
    auto const in_span = [&](protozero::pbf_tag_type list, protozero::pbf_tag_type field,
                             std::int64_t number) {
        auto const span = message([&](auto& out) {
            out.add_message(1, message([&](auto& part) { part.add_int64(field, number); }));
        });
        return in_datum(span, list);
    };
    auto const span_of = [](ForwardBackward const& made) {
        auto const& datum = made.data.at(0);
        return datum.model_input_spans.empty() ? datum.loss_fn_input_spans.at(0)
                                               : datum.model_input_spans.at(0);
    };
    std::vector<Field> const fields{
        {"/seq_id",
         [](std::int64_t number) { return message([&](auto& out) { out.add_int64(2, number); }); },
         [](auto const& made) { return made.seq_id.value_or(0); }, int32_max},
        {"/data/0/model_input_spans/offset",
         [&](std::int64_t number) { return in_span(3, 2, number); },
         [&](auto const& made) { return span_of(made).offset; }, double_max},
        {"/data/0/model_input_spans/length",
         [&](std::int64_t number) { return in_span(3, 3, number); },
         [&](auto const& made) { return span_of(made).length; }, double_max},
        {"/data/0/loss_fn_input_spans/offset",
         [&](std::int64_t number) { return in_span(4, 2, number); },
         [&](auto const& made) { return span_of(made).offset; }, double_max},
        {"/data/0/model_input/expected_tokens",
         [&](std::int64_t number) {
             auto const image = message([&](auto& out) {
                 out.add_string(2, "png");
                 out.add_int64(3, number);
             });
             return in_datum(message([&](auto& out) { out.add_message(2, image); }), 1);
         },
         [](auto const& made) {
             return *std::get<ImageChunk>(made.data.at(0).model_input.chunks.at(0)).expected_tokens;
         },
         int32_max},
    };
    for (auto const& field : fields) {
        SCOPED_TRACE(field.place);
        for (auto const number : {std::int64_t{0}, std::int64_t{1}, field.most}) {
            auto const got = decode_forward_backward_proto(field.body(number));
            ASSERT_TRUE(got) << got.error().what();
            EXPECT_EQ(field.pick(*got), number);
        }
        // The third has a 1 in its lower 32 bits.
        for (auto const number : {std::int64_t{-1}, field.most + 1, (std::int64_t{1} << 60U) + 1,
                                  int64_max, int64_min}) {
            auto const got = decode_forward_backward_proto(field.body(number));
            ASSERT_FALSE(got) << number;
            EXPECT_EQ(got.error().field(), field.place);
            EXPECT_EQ(got.error().value(), std::to_string(number));
            EXPECT_THAT(got.error().what(),
                        HasSubstr(" " + std::to_string(number) + ", which is not from 0 to " +
                                  std::to_string(field.most)));
        }
    }
}

TEST(CodecRanges, ShapesAndTypesOfProtobufFitTheirElements) {
    auto const decode = [](std::vector<std::int64_t> const& shape, std::int64_t dtype) {
        auto const tensor = message([&](auto& out) {
            out.add_bytes(1, std::string(8, '\0'));
            out.add_int64(3, dtype);
            out.add_packed_int64(4, shape.begin(), shape.end());
        });
        auto const datum = message([&](auto& out) {
            out.add_message(2, message([&](auto& entry) {
                                entry.add_string(1, "weights");
                                entry.add_message(2, tensor);
                            }));
        });
        return decode_forward_backward_proto(
            message([&](auto& out) { out.add_message(3, datum); }));
    };
    EXPECT_TRUE(decode({2}, 1));
    EXPECT_TRUE(decode({1}, 2));
    EXPECT_TRUE(decode({}, 2));
    for (auto const& shape : std::vector<std::vector<std::int64_t>>{
             {1},
             {-2},
             {-1, -2},
             {int64_max},
             {int64_min},
             {int64_max, 2, 2},
             {(std::int64_t{1} << 62U) + 1, 2},
             {std::int64_t{1} << 32U, std::int64_t{1} << 32U, 0},
         }) {
        auto const got = decode(shape, 1);
        ASSERT_FALSE(got) << shape.front();
        EXPECT_EQ(got.error().field(), "/data/0/loss_fn_inputs/weights");
        EXPECT_THAT(got.error().what(), HasSubstr(std::to_string(shape.front())));
    }
    for (auto const dtype :
         {std::int64_t{5}, std::int64_t{-1}, (std::int64_t{1} << 32U) + 1, int64_max, int64_min}) {
        auto const got = decode({2}, dtype);
        ASSERT_FALSE(got) << dtype;
        EXPECT_THAT(got.error().what(), HasSubstr(std::to_string(dtype)));
    }
}

}  // namespace
}  // namespace tinkxx::wire::server
