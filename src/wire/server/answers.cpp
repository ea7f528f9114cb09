#include "wire/server/answers.hpp"

#include "wire/json/json.hpp"
#include "wire/values/tensor.hpp"

#include <protozero/pbf_writer.hpp>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace tinkxx::wire::server {

namespace {

using protozero::pbf_writer;

static_assert(std::endian::native == std::endian::little,
              "packed bytes are little-endian (R-WIRE-04)");

constexpr std::int32_t float32 = 1;
constexpr std::int32_t int64 = 2;
constexpr std::int32_t int32 = 3;

template <class T>
std::string_view bytes_of(std::vector<T> const& numbers) {
    return {reinterpret_cast<char const*>(numbers.data()), numbers.size() * sizeof(T)};
}
void add(pbf_writer& out, protozero::pbf_tag_type tag, std::string_view bytes) {
    out.add_bytes(tag, bytes.data(), bytes.size());
}

void add_topk(pbf_writer& out, protozero::pbf_tag_type tag, TopkLogprobs const& rows) {
    std::size_t k = 0;
    for (auto const& row : rows) k = std::max(k, row ? row->size() : 0);
    // Empty cells are token 0 with a logprob that no model gives.
    std::vector<std::int32_t> tokens(rows.size() * k, 0);
    std::vector<float> logprobs(rows.size() * k, -99999.0F);
    for (std::size_t row = 0; row < rows.size(); ++row) {
        if (!rows[row]) continue;
        for (std::size_t i = 0; i < rows[row]->size(); ++i) {
            tokens[row * k + i] = (*rows[row])[i].token;
            logprobs[row * k + i] = (*rows[row])[i].logprob;
        }
    }
    pbf_writer in{out, tag};
    add(in, 1, bytes_of(tokens));
    add(in, 2, bytes_of(logprobs));
    in.add_uint32(3, static_cast<std::uint32_t>(k));
    in.add_uint32(4, static_cast<std::uint32_t>(rows.size()));
}

/// `narrow`: integers travel in 32 bits.
void add_tensor(pbf_writer& out, protozero::pbf_tag_type tag, TensorData const& tensor,
                bool narrow = false) {
    pbf_writer in{out, tag};
    std::string values;
    auto dtype = float32;
    if (auto const* floats = std::get_if<std::vector<float>>(&tensor.data)) {
        values = bytes_of(*floats);
    } else {
        auto const& integers = std::get<std::vector<std::int64_t>>(tensor.data);
        if (narrow) {
            values = bytes_of(std::vector<std::int32_t>(integers.begin(), integers.end()));
        } else {
            values = bytes_of(integers);
        }
        dtype = narrow ? int32 : int64;
    }
    if (tensor.sparse()) {
        pbf_writer csr{in, 2};
        add(csr, 1, values);
        add(csr, 2, bytes_of(*tensor.sparse_crow_indices));
        add(csr, 3, bytes_of(*tensor.sparse_col_indices));
    } else {
        add(in, 1, values);
    }
    in.add_enum(3, dtype);
    if (tensor.shape) in.add_packed_int64(4, tensor.shape->begin(), tensor.shape->end());
}

void write_topk(JsonOut& json, TopkLogprobs const& rows) {
    json.open_array();
    for (auto const& row : rows) {
        if (!row) {
            json.null();
            continue;
        }
        json.open_array();
        for (auto const& cell : *row) {
            json.open_array();
            json.value(cell.token);
            json.value(static_cast<double>(cell.logprob));
            json.close_array();
        }
        json.close_array();
    }
    json.close_array();
}

/// The trailing dimensions that all tensors of a field share; none if they do not.
std::vector<std::int64_t> trailing_shape(TensorData const& tensor) {
    if (!tensor.shape || tensor.shape->size() < 2) return {};
    return {tensor.shape->begin() + 1, tensor.shape->end()};
}

/// Data whose tensors have the same names, types and rows go into one record.
bool same_form(LossFnOutput const& a, LossFnOutput const& b) {
    if (a.size() != b.size()) return false;
    for (auto left = a.begin(), right = b.begin(); left != a.end(); ++left, ++right) {
        if (left->first != right->first || left->second.dtype() != right->second.dtype() ||
            trailing_shape(left->second) != trailing_shape(right->second)) {
            return false;
        }
    }
    return true;
}

void add_record(pbf_writer& out, std::span<LossFnOutput const> data) {
    pbf_writer record{out, 2};
    for (auto const& [name, first] : data.front()) {
        std::string values;
        std::vector<std::int64_t> offsets{0};
        for (auto const& datum : data) {
            std::visit([&values](auto const& numbers) { values += bytes_of(numbers); },
                       datum.at(name).data);
            offsets.push_back(static_cast<std::int64_t>(values.size()));
        }
        pbf_writer entry{record, 2};
        entry.add_string(1, name);
        pbf_writer field{entry, 2};
        add(field, 1, values);
        add(field, 2, bytes_of(offsets));
        field.add_enum(3, first.dtype() == DType::float32 ? float32 : int64);
        auto const trailing = trailing_shape(first);
        field.add_packed_int64(4, trailing.begin(), trailing.end());
    }
    record.add_int64(3, static_cast<std::int64_t>(data.size()));
}

}  // namespace

std::string encode_sample_proto(SampleResponse const& response) {
    std::string body;
    pbf_writer out{body};
    for (auto const& sequence : response.sequences) {
        pbf_writer in{out, 1};
        if (sequence.stop_reason == StopReason::length) in.add_enum(1, 1);
        add(in, 2, bytes_of(sequence.tokens));
        if (sequence.logprobs) add(in, 3, bytes_of(*sequence.logprobs));
        if (sequence.topk_logprobs) add_topk(in, 4, *sequence.topk_logprobs);
    }
    if (response.prompt_logprobs) {
        std::vector<float> logprobs;
        logprobs.reserve(response.prompt_logprobs->size());
        for (auto const& one : *response.prompt_logprobs) {
            logprobs.push_back(one.value_or(std::numeric_limits<float>::quiet_NaN()));
        }
        add(out, 2, bytes_of(logprobs));
    }
    if (response.topk_prompt_logprobs) add_topk(out, 3, *response.topk_prompt_logprobs);
    if (response.prompt_cache_hit_tokens != 0) {
        out.add_int32(4, static_cast<std::int32_t>(response.prompt_cache_hit_tokens));
    }
    if (response.target_prompt_logprobs) add_tensor(out, 5, *response.target_prompt_logprobs);
    if (response.prompt_alt_tokens) {
        pbf_writer in{out, 6};
        add_tensor(in, 1, response.prompt_alt_tokens->tokens, true);
        add_tensor(in, 2, response.prompt_alt_tokens->logprobs);
    }
    return body;
}

std::string encode_sample_json(SampleResponse const& response) {
    std::string body;
    JsonOut json{body};
    json.open_object();
    json.key("sequences");
    json.open_array();
    for (auto const& sequence : response.sequences) {
        json.open_object();
        json.member("stop_reason", sequence.stop_reason == StopReason::stop ? "stop" : "length");
        json.key("tokens");
        json.list(sequence.tokens);
        if (sequence.logprobs) {
            json.key("logprobs");
            json.list(*sequence.logprobs);
        }
        json.close_object();
    }
    json.close_array();
    if (response.prompt_logprobs) {
        json.key("prompt_logprobs");
        json.open_array();
        for (auto const& one : *response.prompt_logprobs) {
            if (one) {
                json.value(static_cast<double>(*one));
            } else {
                json.null();
            }
        }
        json.close_array();
    }
    if (response.topk_prompt_logprobs) {
        json.key("topk_prompt_logprobs");
        write_topk(json, *response.topk_prompt_logprobs);
    }
    json.member("prompt_cache_hit_tokens", response.prompt_cache_hit_tokens);
    json.member("type", "sample");
    json.close_object();
    return body;
}

std::string encode_forward_backward_proto(ForwardBackwardOutput const& output) {
    std::string body;
    pbf_writer out{body};
    out.add_string(1, output.loss_fn_output_type);
    std::span<LossFnOutput const> rest{output.loss_fn_outputs};
    while (!rest.empty()) {
        std::size_t count = 1;
        while (count < rest.size() && same_form(rest.front(), rest[count])) ++count;
        add_record(out, rest.first(count));
        rest = rest.subspan(count);
    }
    for (auto const& [name, value] : output.metrics) {
        pbf_writer entry{out, 3};
        entry.add_string(1, name);
        entry.add_double(2, value);
    }
    return body;
}

std::string encode_forward_backward_json(ForwardBackwardOutput const& output) {
    std::string body;
    JsonOut json{body};
    json.open_object();
    json.member("loss_fn_output_type", output.loss_fn_output_type);
    json.key("loss_fn_outputs");
    json.open_array();
    for (auto const& datum : output.loss_fn_outputs) {
        json.open_object();
        for (auto const& [name, tensor] : datum) {
            json.key(name);
            write(json, tensor);
        }
        json.close_object();
    }
    json.close_array();
    json.key("metrics");
    json.open_object();
    for (auto const& [name, value] : output.metrics) json.member(name, value);
    json.close_object();
    json.close_object();
    return body;
}

std::string encode_detail(std::string_view text) {
    std::string body;
    JsonOut json{body};
    json.open_object();
    json.member("detail", text);
    json.close_object();
    return body;
}

}  // namespace tinkxx::wire::server
