#include "wire/server/decode.hpp"
#include "wire/server/requests.hpp"
#include "wire/values/proto_in.hpp"
#include "wire/values/tensor.hpp"

#include <utility>

namespace tinkxx::wire::server {

namespace {

using proto::bytes;
using proto::bytes_field;
using proto::fixed64_field;
using proto::varint_field;
using proto::Wrong;
using protozero::pbf_reader;

// JSON ------------------------------------------------------------------------------------------

struct DatumIn {
    Datum datum{};
};
void read(JsonIn const& in, DatumIn& out) {
    out.datum.model_input = in.required<Input>("model_input").input;
    for (auto& [name, tensor] : in.required<std::map<std::string, TensorData>>("loss_fn_inputs")) {
        out.datum.loss_fn_inputs.set(name, std::move(tensor));
    }
}

struct ConfigValue {
    LossConfigValue value{};
};
void read(JsonIn const& in, ConfigValue& out) {
    if (in.value().is_string()) {
        out.value = in.as<std::string>();
    } else {
        out.value = in.as<double>();
    }
}

struct InputIn {
    std::vector<DatumIn> data{};
    std::string loss_fn{};
    std::map<std::string, ConfigValue> config{};
};
void read(JsonIn const& in, InputIn& out) {
    out.data = in.required<std::vector<DatumIn>>("data");
    out.loss_fn = in.required<std::string>("loss_fn");
    out.config = either(in, "loss_fn_config", std::map<std::string, ConfigValue>{});
}

// Protobuf --------------------------------------------------------------------------------------

// Where in the request; made to text only for an error.
struct Place {
    std::optional<std::size_t> datum{};
    std::string_view member{};
    std::string_view name{};

    [[nodiscard]] std::string text() const {
        std::string out;
        if (datum) out += "/data/" + std::to_string(*datum);
        if (!member.empty()) (out += '/') += member;
        if (!name.empty()) (out += '/') += name;
        return out;
    }
};

ModelInputChunk image(pbf_reader in, Place const& place) {
    ImageChunk out;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes_field(1):
                out.data = bytes(in);
                break;
            case bytes_field(2): {
                auto const format = bytes(in);
                if (format != "png" && format != "jpeg") {
                    throw Wrong{place, "an image that is neither png nor jpeg"};
                }
                out.format = format == "jpeg" ? ImageFormat::jpeg : ImageFormat::png;
                break;
            }
            case varint_field(3):
                out.expected_tokens =
                    proto::number_within(in, Count::least, Count::most, place, "expected_tokens");
                break;
            default:
                in.skip();
        }
    }
    return out;
}

// The bytes in field 1 of a message.
std::string_view only_bytes(pbf_reader in) {
    std::string_view out;
    while (in.next()) {
        if (in.tag_and_type() == bytes_field(1)) {
            out = bytes(in);
        } else {
            in.skip();
        }
    }
    return out;
}

void chunk(pbf_reader in, Place const& place, ModelInput& out) {
    bool any = false;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes_field(1):
                out.chunks.emplace_back(
                    EncodedTextChunk{proto::packed<Token>(only_bytes(in.get_message()), place)});
                break;
            case bytes_field(2):
                out.chunks.push_back(image(in.get_message(), place));
                break;
            case bytes_field(3):
                out.chunks.emplace_back(DmelChunk{std::string{only_bytes(in.get_message())}});
                break;
            default:
                in.skip();
                continue;
        }
        any = true;
    }
    if (!any) throw Wrong{place, "a chunk of no kind that is known"};
}

ProvenanceSpan span(pbf_reader in, Place const& place) {
    ProvenanceSpan out;
    while (in.next()) {
        auto const tag = in.tag_and_type();
        if (tag != bytes_field(1) && tag != bytes_field(2)) {
            in.skip();
            continue;
        }
        out.kind =
            tag == bytes_field(1) ? ProvenanceSpan::Kind::prompt : ProvenanceSpan::Kind::sampled;
        auto part = in.get_message();
        while (part.next()) {
            switch (part.tag_and_type()) {
                case bytes_field(1):
                    out.sequence_id = bytes(part);
                    break;
                case varint_field(2):
                    out.offset =
                        proto::number_within(part, Number::least, Number::most, place, "offset");
                    break;
                case varint_field(3):
                    out.length =
                        proto::number_within(part, Number::least, Number::most, place, "length");
                    break;
                default:
                    part.skip();
            }
        }
    }
    return out;
}

/// The name and the message of an entry of a map.
std::pair<std::string_view, pbf_reader> entry(pbf_reader in) {
    std::pair<std::string_view, pbf_reader> out;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes_field(1):
                out.first = bytes(in);
                break;
            case bytes_field(2):
                out.second = in.get_message();
                break;
            default:
                in.skip();
        }
    }
    return out;
}

Datum datum(pbf_reader in, std::size_t index) {
    Datum out;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes_field(1):
                chunk(in.get_message(), Place{.datum = index, .member = "model_input"},
                      out.model_input);
                break;
            case bytes_field(2): {
                auto const [name, message] = entry(in.get_message());
                out.loss_fn_inputs.set(
                    std::string{name},
                    proto::tensor(message,
                                  Place{.datum = index, .member = "loss_fn_inputs", .name = name}));
                break;
            }
            case bytes_field(3):
                out.model_input_spans.push_back(
                    span(in.get_message(), Place{.datum = index, .member = "model_input_spans"}));
                break;
            case bytes_field(4):
                out.loss_fn_input_spans.push_back(
                    span(in.get_message(), Place{.datum = index, .member = "loss_fn_input_spans"}));
                break;
            default:
                in.skip();
        }
    }
    return out;
}

void number_entry(pbf_reader in, LossConfig& out) {
    auto const [name, value] = proto::named_number(in);
    out.insert_or_assign(std::string{name}, value);
}

void config_entry(pbf_reader in, LossConfig& out) {
    auto [name, message] = entry(in);
    LossConfigValue value;
    while (message.next()) {
        switch (message.tag_and_type()) {
            case fixed64_field(1):
                value = message.get_double();
                break;
            case bytes_field(2):
                value = std::string{bytes(message)};
                break;
            default:
                message.skip();
        }
    }
    out.insert_or_assign(std::string{name}, std::move(value));
}

ForwardBackward request(std::string_view body) {
    ForwardBackward out;
    LossConfig numbers;
    LossConfig newer;
    pbf_reader in{body.data(), body.size()};
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes_field(1):
                out.model_id = bytes(in);
                break;
            case varint_field(2):
                // 0 does not travel, and stands for none.
                out.seq_id = proto::number_within(in, 0, Count::most, Place{}, "seq_id");
                break;
            case bytes_field(3):
                out.data.push_back(datum(in.get_message(), out.data.size()));
                break;
            case bytes_field(4):
                out.loss_fn = bytes(in);
                break;
            case bytes_field(5):
                number_entry(in.get_message(), numbers);
                break;
            case varint_field(6):
                out.forward_only = in.get_uint64() != 0;  // `get_bool` reads beyond the end
                break;
            case bytes_field(7):
                config_entry(in.get_message(), newer);
                break;
            default:
                in.skip();
        }
    }
    // Numbers are in both, texts in the newer one only.
    out.config = newer.empty() ? std::move(numbers) : std::move(newer);
    if (out.seq_id == 0) out.seq_id.reset();
    return out;
}

}  // namespace

Result<ForwardBackward> decode_forward_backward(std::string_view operation, std::string_view json) {
    return read_request<ForwardBackward>(
        operation, json, [operation](JsonIn const& in, ForwardBackward& out) {
            out.forward_only = operation == "forward";
            auto input =
                in.required<InputIn>(out.forward_only ? "forward_input" : "forward_backward_input");
            out.model_id = in.required<std::string>("model_id");
            out.seq_id = optional_number<Number>(in, "seq_id");
            out.data.reserve(input.data.size());
            for (auto& one : input.data) out.data.push_back(std::move(one.datum));
            out.loss_fn = std::move(input.loss_fn);
            for (auto& [name, one] : input.config) out.config.emplace(name, std::move(one.value));
        });
}

Result<ForwardBackward> decode_forward_backward_proto(std::string_view body) {
    constexpr std::string_view operation = "forward_backward";
    try {
        return request(body);
    } catch (Wrong const& wrong) {
        return refusal(operation, wrong.place, wrong.value,
                       "the protobuf body has at " + wrong.place + " " + wrong.why);
    } catch (protozero::exception const& broken) {
        return refusal(operation, {}, {},
                       std::string{"the body is no message ForwardBackwardRequest of protobuf ("} +
                           broken.what() + ")");
    } catch (ValidationError const& bad) {
        return refusal(operation, std::string{bad.field()}, std::string{bad.value()}, bad.what());
    }
}

}  // namespace tinkxx::wire::server
