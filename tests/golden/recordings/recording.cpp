#include "golden/recordings/recording.hpp"

#include "golden/recordings/pass_body.hpp"
#include "wire/json/base64.hpp"
#include "wire/json/json.hpp"

#include <gtest/gtest.h>
#include <protozero/pbf_reader.hpp>

#include <algorithm>
#include <cmath>

namespace tinkxx::golden {

value const* find(value const& object, std::string_view name) {
    if (!object.is_object()) return nullptr;
    auto const* found = object.get_object().if_contains({name.data(), name.size()});
    return found == nullptr || found->is_null() ? nullptr : found;
}

std::string text(value const& object, std::string_view name) {
    return value_to<std::string>(object.at({name.data(), name.size()}));
}

std::string bytes_of(value const& object, std::string_view name) {
    return wire::decode_base64(text(object, name)).value();
}

// Inputs ------------------------------------------------------------------------------------------

namespace {

ModelInputChunk chunk(value const& json) {
    auto const type = text(json, "type");
    auto const format =
        member<std::string>(json, "format") == "jpeg" ? ImageFormat::jpeg : ImageFormat::png;
    auto const expected = member<std::int64_t>(json, "expected_tokens");
    if (type == "image") {
        return ImageChunk{
            .data = bytes_of(json, "data_base64"), .format = format, .expected_tokens = expected};
    }
    if (type == "image_asset_pointer") {
        return ImageAssetPointerChunk{
            .location = text(json, "location"), .format = format, .expected_tokens = expected};
    }
    if (type == "dmel") return DmelChunk{bytes_of(json, "data_base64")};
    EXPECT_EQ(type, "encoded_text") << "a kind of chunk that nobody here knows";
    return EncodedTextChunk{value_to<std::vector<Token>>(json.at("tokens"))};
}

Stop stop(value const& json) {
    if (json.is_string()) return value_to<std::string>(json);
    if (json.as_array().empty()) return Stop::nowhere();
    if (json.as_array().front().is_string()) return value_to<std::vector<std::string>>(json);
    return value_to<std::vector<Token>>(json);
}

TensorData tensor(value const& json) {
    using Integers = std::vector<std::int64_t>;
    TensorData out;
    if (json.at("dtype") == "int64") {
        out.data = value_to<Integers>(json.at("data"));
    } else {
        out.data = value_to<std::vector<float>>(json.at("data"));
    }
    out.shape = member<Integers>(json, "shape");
    out.sparse_crow_indices = member<Integers>(json, "sparse_crow_indices");
    out.sparse_col_indices = member<Integers>(json, "sparse_col_indices");
    return out;
}

}  // namespace

ModelInput model_input(value const& json) {
    if (auto const token = member<Token>(json, "repeat_token")) {
        auto const count = value_to<std::size_t>(json.at("count"));
        return ModelInput::from_tokens(std::vector<Token>(count, *token));
    }
    ModelInput out;
    for (auto const& one : json.at("chunks").as_array()) out.chunks.push_back(chunk(one));
    return out;
}

SamplingParams sampling_params(value const& json) {
    SamplingParams out;
    out.max_tokens = member<std::int64_t>(json, "max_tokens");
    out.seed = member<std::uint64_t>(json, "seed");
    if (auto const* found = find(json, "stop")) out.stop = stop(*found);
    out.temperature = member<double>(json, "temperature").value_or(out.temperature);
    out.top_k = member<std::int64_t>(json, "top_k").value_or(out.top_k);
    out.top_p = member<double>(json, "top_p").value_or(out.top_p);
    return out;
}

SampleOptions sample_options(value const& args) {
    SampleOptions out;
    out.num_samples = member<std::int64_t>(args, "num_samples").value_or(1);
    out.include_prompt_logprobs = member<bool>(args, "include_prompt_logprobs").value_or(false);
    out.topk_prompt_logprobs = member<std::int64_t>(args, "topk_prompt_logprobs").value_or(0);
    out.topk_sample_logprobs = member<std::int64_t>(args, "topk_sample_logprobs").value_or(0);
    if (auto const* found = find(args, "target_prompt_logprobs")) {
        out.target_prompt_logprobs = tensor(*found);
    }
    out.prompt_alt_tokens_k = member<std::int64_t>(args, "prompt_alt_tokens_k").value_or(0);
    out.prompt_logprobs_last_n = member<std::int64_t>(args, "prompt_logprobs_last_n");
    return out;
}

// Results -----------------------------------------------------------------------------------------

namespace {

value number(float one) {
    if (std::isnan(one)) return "NaN";
    if (std::isinf(one)) return one < 0 ? "-Infinity" : "Infinity";
    return static_cast<double>(one);
}

value json_of(std::optional<std::vector<float>> const& list) {
    if (!list) return nullptr;
    boost::json::array out;
    for (auto const one : *list) out.push_back(number(one));
    return out;
}

value json_of(std::optional<TopkLogprobs> const& rows) {
    if (!rows) return nullptr;
    boost::json::array out;
    for (auto const& row : *rows) {
        if (!row) {
            out.push_back(nullptr);
            continue;
        }
        boost::json::array cells;
        for (auto const& cell : *row) {
            cells.push_back(boost::json::array{cell.token, number(cell.logprob)});
        }
        out.push_back(cells);
    }
    return out;
}

value json_of(std::optional<TensorData> const& tensor) {
    if (!tensor) return nullptr;
    boost::json::object out;
    if (auto const* floats = std::get_if<std::vector<float>>(&tensor->data)) {
        out = {{"data", json_of(std::optional{*floats})}, {"dtype", "float32"}};
    } else {
        out = {{"data", boost::json::value_from(std::get<1>(tensor->data))}, {"dtype", "int64"}};
    }
    auto const list = [&out](char const* name, auto const& numbers) {
        if (numbers) out[name] = boost::json::value_from(*numbers);
    };
    list("shape", tensor->shape);
    list("sparse_crow_indices", tensor->sparse_crow_indices);
    list("sparse_col_indices", tensor->sparse_col_indices);
    return out;
}

bool integral(value const& number) { return number.is_int64() || number.is_uint64(); }

}  // namespace

value json_of(std::vector<std::optional<float>> const& logprobs) {
    boost::json::array out;
    for (auto const one : logprobs) out.push_back(one ? number(*one) : value(nullptr));
    return out;
}

value json_of(SampleResponse const& response) {
    boost::json::array sequences;
    for (auto const& sequence : response.sequences) {
        sequences.push_back(
            {{"stop_reason", sequence.stop_reason == StopReason::stop ? "stop" : "length"},
             {"tokens", boost::json::value_from(sequence.tokens)},
             {"logprobs", json_of(sequence.logprobs)},
             {"topk_logprobs", json_of(sequence.topk_logprobs)},
             {"sequence_id", sequence.sequence_id}});
    }
    value alternatives;
    if (auto const& alt = response.prompt_alt_tokens) {
        alternatives = {{"tokens", json_of(std::optional{alt->tokens})},
                        {"logprobs", json_of(std::optional{alt->logprobs})}};
    }
    return {{"sequences", sequences},
            {"prompt_logprobs",
             response.prompt_logprobs ? json_of(*response.prompt_logprobs) : value(nullptr)},
            {"topk_prompt_logprobs", json_of(response.topk_prompt_logprobs)},
            {"prompt_cache_hit_tokens", response.prompt_cache_hit_tokens},
            {"target_prompt_logprobs", json_of(response.target_prompt_logprobs)},
            {"prompt_alt_tokens", alternatives}};
}

value json_of(ServerCapabilities const& capabilities) {
    auto const or_null = [](auto const& given) {
        return given ? boost::json::value_from(*given) : value(nullptr);
    };
    boost::json::array models;
    for (auto const& model : capabilities.supported_models) {
        models.push_back({{"model_name", or_null(model.model_name)},
                          {"max_context_length", or_null(model.max_context_length)},
                          {"trainable", or_null(model.trainable)},
                          {"sampleable", or_null(model.sampleable)}});
    }
    return {{"supported_models", models}};
}

bool same(value const& a, value const& b) {
    if (a.is_number() && b.is_number()) {
        if (integral(a) && integral(b)) return a == b;
        return a.to_number<double>() == b.to_number<double>();
    }
    if (a.is_array() && b.is_array()) {
        return std::ranges::equal(a.get_array(), b.get_array(), same);
    }
    if (a.is_object() && b.is_object()) {
        return a.get_object().size() == b.get_object().size() &&
               std::ranges::all_of(a.get_object(), [&b](auto const& one) {
                   auto const* other = b.get_object().if_contains(one.key());
                   return other != nullptr && same(one.value(), *other);
               });
    }
    return a == b;
}

bool agrees(value const& recorded, value const& ours, double tolerance) {
    auto const each = [tolerance](value const& one, value const& other) {
        return agrees(one, other, tolerance);
    };
    if (recorded.is_object() && ours.is_object()) {
        return std::ranges::all_of(recorded.get_object(), [&](auto const& one) {
            auto const* other = ours.get_object().if_contains(one.key());
            return other != nullptr && each(one.value(), *other);
        });
    }
    if (recorded.is_array() && ours.is_array()) {
        return std::ranges::equal(recorded.get_array(), ours.get_array(), each);
    }
    if (recorded.is_number() && ours.is_number()) {
        if (integral(recorded) && integral(ours)) return recorded == ours;
        auto const a = recorded.to_number<double>();
        auto const b = ours.to_number<double>();
        return static_cast<float>(a) == static_cast<float>(b) ||
               std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
    }
    return recorded == ours;
}

value without_types(value recorded) {
    if (recorded.is_object()) recorded.get_object().erase("type");
    if (recorded.is_array()) {
        for (auto& one : recorded.get_array()) {
            if (one.is_object()) one.get_object().erase("type");
        }
    }
    return recorded;
}

// Requests ----------------------------------------------------------------------------------------

namespace {

std::string numbered(std::int64_t number) { return "number " + std::to_string(number); }

std::string subject_in(std::string const& path, value const& body) {
    if (path.ends_with("/retrieve_future")) {
        return "promise " + member<std::string>(body, "request_id").value_or("");
    }
    auto const number = member<std::int64_t>(body, "seq_id");
    return number ? numbered(*number) : "";
}

}  // namespace

std::string subject_of(value const& recorded) {
    if (auto const number = member<std::int64_t>(recorded, "seq_id")) return numbered(*number);
    auto const* body = find(recorded, "body_json");
    return body == nullptr ? "" : subject_in(text(recorded, "path"), *body);
}

std::string subject_of(testing::SentRequest const& sent) {
    if (is_protobuf(sent)) {
        auto const body = plain_body(sent);
        protozero::pbf_reader message{body};
        return message.next(2) ? numbered(message.get_int32()) : "";
    }
    auto const body = wire::parse_json(sent.path, sent.body);
    return body ? subject_in(sent.path, *body) : "";
}

// Answers -----------------------------------------------------------------------------------------

testing::Reply reply_of(value const& answer) {
    if (member<bool>(answer, "connection_dropped").value_or(false)) {
        return testing::failing(FailureKind::reset, Seen::maybe);
    }
    testing::Reply reply;
    reply.status = value_to<int>(answer.at("status"));
    if (auto const type = member<std::string>(answer, "content_type")) {
        reply.headers.add("Content-Type", *type);
    }
    if (auto const* lines = find(answer, "headers")) {
        for (auto const& line : lines->as_array()) {
            reply.headers.add(value_to<std::string>(line.at(0)), value_to<std::string>(line.at(1)));
        }
    }
    if (member<bool>(answer, "transfer_encoding_chunked").value_or(false)) {
        reply.headers.add("Transfer-Encoding", "chunked");
    }
    if (auto const late = member<double>(answer, "delay_seconds")) {
        reply.delay = std::chrono::nanoseconds{static_cast<std::int64_t>(*late * 1e9)};
    }
    if (find(answer, "body_base64") != nullptr) {
        reply.body = bytes_of(answer, "body_base64");
    } else if (auto const body = member<std::string>(answer, "body_text")) {
        reply.body = *body;
    }
    return reply;
}

namespace {

ErrorCategory category_named(std::string_view name) {
    for (auto const one : {ErrorCategory::user, ErrorCategory::server}) {
        if (to_string(one) == name) return one;
    }
    return ErrorCategory::unknown;
}

}  // namespace

void expect_same_error(value const& recorded, Error const& ours) {
    auto const name = text(recorded, "class");
    if (name == "RequestFailedError") {
        EXPECT_EQ(ours.kind(), ErrorKind::request_failed) << ours.what();
        EXPECT_EQ(ours.category(), category_named(text(recorded, "category"))) << ours.what();
        return;
    }
    if (name == "RetryableException") {
        EXPECT_EQ(ours.kind(), ErrorKind::promise_lost) << ours.what();
        return;
    }
    if (name == "APIConnectionError") {
        EXPECT_EQ(ours.kind(), ErrorKind::connection) << ours.what();
        return;
    }
    if (name == "APITimeoutError") {
        EXPECT_EQ(ours.kind(), ErrorKind::timeout) << ours.what();
        return;
    }
    // The server accepted the request and then reported that it failed.
    if (text(recorded, "message").starts_with("Trace export failed")) {
        EXPECT_EQ(ours.kind(), ErrorKind::request_failed) << ours.what();
        return;
    }
    // Python wraps a status that ends the wait for a result; here the error itself carries it.
    auto status = member<int>(recorded, "status_code");
    auto const* cause = status ? nullptr : find(recorded, "cause");
    if (cause != nullptr) status = member<int>(*cause, "status_code");
    if (status && *status >= 300) {
        auto kind = *status == 402 ? ErrorKind::billing : ErrorKind::status;
        // C-64: no such status of a result shall have the sample submitted again.
        if (cause != nullptr && (*status == 409 || *status >= 500)) {
            kind = ErrorKind::request_failed;
        }
        EXPECT_EQ(ours.kind(), kind) << ours.what();
        EXPECT_EQ(ours.http_status(), status) << ours.what();
        return;
    }
    // Whatever Python's word for it: an argument or an answer that cannot be.
    EXPECT_EQ(ours.kind(), ErrorKind::validation) << name << "; " << ours.what();
}

}  // namespace tinkxx::golden
