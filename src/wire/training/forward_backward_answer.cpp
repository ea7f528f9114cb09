#include "wire/json/json.hpp"
#include "wire/training/training.hpp"
#include "wire/values/proto_in.hpp"
#include "wire/values/tensor.hpp"

#include <limits>
#include <map>
#include <utility>

namespace tinkxx::wire {

namespace {

using proto::bytes;
using proto::bytes_field;
using proto::varint_field;
using proto::Wrong;
using protozero::pbf_reader;

// A server may leave out all fields and give only the number of data. Nobody sends so many at
// once; without a bound a few bytes could ask for all memory.
constexpr std::int64_t most_data = std::int64_t{1} << 20U;
constexpr std::size_t most_dimensions = 16;

// Where in the answer; made to text only for an error.
struct PassPlace {
    std::optional<std::size_t> record{};
    std::string_view field{};

    [[nodiscard]] std::string text() const {
        std::string out = "/loss_fn_outputs";
        if (record) out += '/' + std::to_string(*record);
        if (!field.empty()) (out += '/') += field;
        return out;
    }
};

struct Batched {
    std::string_view data{};
    std::string_view offsets{};
    std::int32_t dtype{0};
    std::vector<std::int64_t> trailing_shape{};
};

struct Record {
    std::map<std::string_view, Batched> fields{};
    std::int64_t num_datums{0};
};

Batched batched(pbf_reader in, PassPlace const& place) {
    Batched out;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes_field(1):
                out.data = bytes(in);
                break;
            case bytes_field(2):
                out.offsets = bytes(in);
                break;
            case varint_field(3):
                out.dtype = proto::enumerator(in, place, "dtype");
                break;
            case bytes_field(4):
                for (auto const dimension : in.get_packed_int64()) {
                    out.trailing_shape.push_back(dimension);
                }
                break;
            case varint_field(4):
                out.trailing_shape.push_back(in.get_int64());
                break;
            default:
                in.skip();
        }
    }
    if (out.trailing_shape.size() > most_dimensions) {
        throw Wrong{place, std::to_string(out.trailing_shape.size()) +
                               " dimensions, which are more than any tensor has"};
    }
    return out;
}

Record record(pbf_reader in, std::size_t index) {
    Record out;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes_field(2): {
                auto entry = in.get_message();
                std::string_view name;
                std::optional<pbf_reader> content;
                while (entry.next()) {
                    switch (entry.tag_and_type()) {
                        case bytes_field(1):
                            name = bytes(entry);
                            break;
                        case bytes_field(2):
                            content = entry.get_message();
                            break;
                        default:
                            entry.skip();
                    }
                }
                out.fields[name] = batched(content.value_or(pbf_reader{}),
                                           PassPlace{.record = index, .field = name});
                break;
            }
            case varint_field(3):
                out.num_datums = in.get_int64();
                break;
            default:
                in.skip();
        }
    }
    return out;
}

// The tensors of a field, one for each datum.
std::vector<TensorData> tensors(Batched const& field, PassPlace const& place) {
    auto const item = proto::item_bytes(field.dtype);
    if (item == 0) {
        throw Wrong{place, "element type " + std::to_string(field.dtype) + ", which is unknown"};
    }
    if (field.data.size() % item != 0) {
        throw Wrong{place, std::to_string(field.data.size()) +
                               " bytes, which are no whole number of " + std::to_string(item) +
                               "-byte elements"};
    }
    std::uint64_t row = 1;
    for (auto const dimension : field.trailing_shape) {
        if (dimension < 0 ||
            __builtin_mul_overflow(row, static_cast<std::uint64_t>(dimension), &row)) {
            throw Wrong{place, "dimension " + std::to_string(dimension) + ", which cannot be"};
        }
    }
    auto const offsets = proto::packed<std::int64_t>(field.offsets, place);
    std::vector<TensorData> out;
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
        auto const from = offsets[i];
        auto const to = offsets[i + 1];
        auto const step = static_cast<std::int64_t>(item);
        if (from < 0 || to < from || to > static_cast<std::int64_t>(field.data.size()) ||
            from % step != 0 || to % step != 0) {
            throw Wrong{place, "datum " + std::to_string(i) + " from byte " + std::to_string(from) +
                                   " to " + std::to_string(to) + " of " +
                                   std::to_string(field.data.size())};
        }
        auto const size = static_cast<std::size_t>(to - from);
        auto const elements = size / item;
        if (row == 0 ? elements != 0 : elements % row != 0) {
            throw Wrong{place, "datum " + std::to_string(i) + " with " + std::to_string(elements) +
                                   " elements, which are no whole number of rows of " +
                                   std::to_string(row)};
        }
        auto& tensor = out.emplace_back();
        tensor.data = proto::numbers(field.data.substr(static_cast<std::size_t>(from), size),
                                     field.dtype, place);
        auto& shape = tensor.shape.emplace();
        shape.reserve(field.trailing_shape.size() + 1);
        shape.push_back(row == 0 ? 0 : static_cast<std::int64_t>(elements / row));
        shape.insert(shape.end(), field.trailing_shape.begin(), field.trailing_shape.end());
    }
    return out;
}

std::vector<LossFnOutput> outputs(std::vector<Record> const& records) {
    // By field, over all records.
    std::map<std::string_view, std::vector<TensorData>> fields;
    std::int64_t total = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
        if (records[i].num_datums < 0 || records[i].num_datums > most_data - total) {
            throw Wrong{
                PassPlace{.record = i},
                "num_datums " + std::to_string(records[i].num_datums) + ", which cannot be"};
        }
        total += records[i].num_datums;
        for (auto const& [name, field] : records[i].fields) {
            auto more = tensors(field, PassPlace{.record = i, .field = name});
            auto& all = fields[name];
            all.insert(all.end(), std::make_move_iterator(more.begin()),
                       std::make_move_iterator(more.end()));
        }
    }
    if (total == 0 && !fields.empty()) {
        total = static_cast<std::int64_t>(fields.begin()->second.size());
    }
    auto const count = static_cast<std::size_t>(total);
    std::vector<LossFnOutput> out(count);
    for (auto& [name, all] : fields) {
        if (all.size() < count) {
            throw Wrong{PassPlace{.field = name}, std::to_string(all.size()) + " tensors for " +
                                                      std::to_string(count) + " data"};
        }
        for (std::size_t i = 0; i < count; ++i) out[i].emplace(name, std::move(all[i]));
    }
    return out;
}

void metric(pbf_reader in, MetricValues& out) {
    auto const [name, value] = proto::named_number(in);
    out.insert_or_assign(std::string{name}, value);
}

ForwardBackwardOutput answer(std::string_view body) {
    ForwardBackwardOutput out;
    std::vector<Record> records;
    pbf_reader in{body.data(), body.size()};
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes_field(1):
                out.loss_fn_output_type = bytes(in);
                break;
            case bytes_field(2):
                records.push_back(record(in.get_message(), records.size()));
                break;
            case bytes_field(3):
                metric(in.get_message(), out.metrics);
                break;
            default:
                in.skip();
        }
    }
    auto& type = out.loss_fn_output_type;
    if (!records.empty()) {
        // The class without its module.
        if (auto const colon = type.rfind(':'); colon != std::string::npos)
            type.erase(0, colon + 1);
    } else if (type.empty()) {
        type = "ArrayRecord";
    }
    out.loss_fn_outputs = outputs(records);
    return out;
}

}  // namespace

static void read(JsonIn const& in, ForwardBackwardOutput& out) {
    out.loss_fn_output_type = in.required<std::string>("loss_fn_output_type");
    out.loss_fn_outputs = in.required<std::vector<LossFnOutput>>("loss_fn_outputs");
    // Some servers give none (R-WIRE-10).
    out.metrics = in.optional<MetricValues>("metrics").value_or(MetricValues{});
}

Result<ForwardBackwardOutput> decode_forward_backward_proto(std::string_view operation,
                                                            std::string_view body) {
    return proto::read(operation, [body] { return answer(body); });
}

Result<ForwardBackwardOutput> decode_forward_backward_json(std::string_view operation,
                                                           std::string_view json) {
    return decode_json<ForwardBackwardOutput>(operation, json);
}

}  // namespace tinkxx::wire
