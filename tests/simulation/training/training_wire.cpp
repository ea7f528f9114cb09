#include "simulation/training/training_wire.hpp"

#include "base/common/entropy.hpp"
#include "simulation/common/messages.hpp"

#include <zstd.h>
#include <boost/json/parse.hpp>

#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

namespace tinkxx::simulation {

namespace {

namespace json = boost::json;

class Fold {
public:
    explicit Fold(std::uint64_t start) noexcept : value_{base::mix(start)} {}

    Fold& add(std::uint64_t number) noexcept {
        value_ = base::mix(value_ ^ base::mix(number + 1));
        return *this;
    }
    Fold& add(double number) noexcept {
        return add(std::bit_cast<std::uint64_t>(number + 0.0));  // there is one zero
    }
    Fold& add(std::int64_t number) noexcept { return add(static_cast<std::uint64_t>(number)); }
    Fold& add(std::string_view text) noexcept {
        add(static_cast<std::uint64_t>(text.size()));
        for (char const c : text) add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
        return *this;
    }
    [[nodiscard]] std::uint64_t value() const noexcept { return value_; }

private:
    std::uint64_t value_;
};

std::uint64_t digest(SentDatum const& datum) {
    Fold fold{1};
    for (auto const token : datum.tokens) fold.add(token);
    for (auto const& [name, tensor] : datum.inputs) {
        fold.add(name).add(std::uint64_t{tensor.integers});
        for (auto const extent : tensor.shape) fold.add(extent);
        for (auto const value : tensor.values) fold.add(value);
    }
    return fold.value();
}

// Reading protobuf -------------------------------------------------------------------------------

class ProtoReader {
public:
    explicit ProtoReader(std::string_view bytes) noexcept : rest_{bytes} {}

    /// Goes to the next field. False at the end, or where the bytes make no sense.
    bool next() {
        if (rest_.empty() || bad_) return false;
        auto const tag = read_varint();
        field_ = static_cast<int>(tag >> 3U);
        number_ = 0;
        bytes_ = {};
        switch (tag & 7U) {
            case 0:
                number_ = read_varint();
                break;
            case 1:
                bytes_ = take(8);
                break;
            case 2:
                bytes_ = take(read_varint());
                break;
            case 5:
                bytes_ = take(4);
                break;
            default:
                bad_ = true;
        }
        return !bad_;
    }
    [[nodiscard]] int field() const noexcept { return field_; }
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
    [[nodiscard]] std::string_view bytes() const noexcept { return bytes_; }
    [[nodiscard]] bool bad() const noexcept { return bad_; }
    std::uint64_t read_varint() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            if (rest_.empty()) break;
            auto const byte = static_cast<unsigned char>(rest_.front());
            rest_.remove_prefix(1);
            value |= std::uint64_t{byte & 0x7fU} << shift;
            if (byte < 0x80) return value;
        }
        bad_ = true;
        return 0;
    }
    [[nodiscard]] bool empty() const noexcept { return rest_.empty(); }

private:
    std::string_view take(std::uint64_t size) {
        if (size > rest_.size()) {
            bad_ = true;
            return {};
        }
        auto const taken = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return taken;
    }

    std::string_view rest_;
    int field_{0};
    std::uint64_t number_{0};
    std::string_view bytes_{};
    bool bad_{false};
};

template <class T>
std::vector<T> unpacked(std::string_view bytes) {
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
}

SentTensor read_tensor(std::string_view bytes) {
    SentTensor tensor;
    std::string_view dense;
    for (ProtoReader in{bytes}; in.next();) {
        if (in.field() == 1) dense = in.bytes();
        if (in.field() == 3) tensor.integers = in.number() == 2;
        if (in.field() == 4) {
            for (ProtoReader shape{in.bytes()}; !shape.empty() && !shape.bad();) {
                tensor.shape.push_back(static_cast<std::int64_t>(shape.read_varint()));
            }
        }
    }
    if (tensor.integers) {
        for (auto const each : unpacked<std::int64_t>(dense)) {
            tensor.values.push_back(static_cast<double>(each));
        }
    } else {
        for (auto const each : unpacked<float>(dense)) tensor.values.push_back(each);
    }
    return tensor;
}

SentDatum read_datum(std::string_view bytes) {
    SentDatum datum;
    for (ProtoReader in{bytes}; in.next();) {
        if (in.field() == 1) {
            for (ProtoReader chunk{in.bytes()}; chunk.next();) {
                if (chunk.field() != 1) continue;
                for (ProtoReader text{chunk.bytes()}; text.next();) {
                    for (auto const token : unpacked<std::int32_t>(text.bytes())) {
                        datum.tokens.push_back(token);
                    }
                }
            }
        }
        if (in.field() == 2) {
            std::string name;
            SentTensor tensor;
            for (ProtoReader entry{in.bytes()}; entry.next();) {
                if (entry.field() == 1) name = entry.bytes();
                if (entry.field() == 2) tensor = read_tensor(entry.bytes());
            }
            datum.inputs.emplace(std::move(name), std::move(tensor));
        }
    }
    return datum;
}

std::optional<TrainRequest> read_pass(std::string_view bytes) {
    TrainRequest request;
    request.kind = TrainKind::forward_backward;
    ProtoReader in{bytes};
    while (in.next()) {
        switch (in.field()) {
            case 1:
                request.model_id = in.bytes();
                break;
            case 2:
                request.seq_id = static_cast<std::int64_t>(in.number());
                break;
            case 3:
                request.data.push_back(read_datum(in.bytes()));
                break;
            case 4:
                request.loss = in.bytes();
                break;
            case 5: {
                std::string name;
                double value = 0;
                for (ProtoReader entry{in.bytes()}; entry.next();) {
                    if (entry.field() == 1) name = entry.bytes();
                    if (entry.field() == 2 && entry.bytes().size() == 8) {
                        std::memcpy(&value, entry.bytes().data(), 8);
                    }
                }
                request.config[name] = value;
                break;
            }
            case 6:
                if (in.number() != 0) request.kind = TrainKind::forward;
                break;
            default:
                break;
        }
    }
    if (in.bad()) return std::nullopt;
    return request;
}

std::optional<std::string> unzipped(std::string_view bytes) {
    auto const size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > (1U << 30U)) {
        return std::nullopt;
    }
    std::string plain(size, '\0');
    auto const made = ZSTD_decompress(plain.data(), plain.size(), bytes.data(), bytes.size());
    if (ZSTD_isError(made) != 0U || made != size) return std::nullopt;
    return plain;
}

// Reading JSON -----------------------------------------------------------------------------------

std::string text(json::object const& object, std::string_view name) {
    auto const* value = object.if_contains(name);
    return value != nullptr && value->is_string() ? std::string{value->as_string()} : std::string{};
}

double number(json::value const& value) { return value.to_number<double>(); }

std::int64_t whole(json::object const& object, std::string_view name, std::int64_t otherwise) {
    auto const* value = object.if_contains(name);
    return value != nullptr && value->is_number() ? value->to_number<std::int64_t>() : otherwise;
}

bool truth(json::object const& object, std::string_view name) {
    auto const* value = object.if_contains(name);
    return value != nullptr && value->is_bool() && value->as_bool();
}

SentTensor read_tensor(json::object const& object) {
    SentTensor tensor;
    tensor.integers = text(object, "dtype") == "int64";
    if (auto const* shape = object.if_contains("shape"); shape != nullptr && shape->is_array()) {
        for (auto const& extent : shape->as_array()) {
            tensor.shape.push_back(extent.to_number<std::int64_t>());
        }
    }
    for (auto const& value : object.at("data").as_array()) {
        // The text stands for a float, and may be shorter than that of the double it is.
        auto const read = number(value);
        tensor.values.push_back(tensor.integers ? read
                                                : static_cast<double>(static_cast<float>(read)));
    }
    return tensor;
}

void read_input(json::object const& input, TrainRequest& request) {
    request.loss = text(input, "loss_fn");
    if (auto const* config = input.if_contains("loss_fn_config");
        config != nullptr && config->is_object()) {
        for (auto const& [name, value] : config->as_object()) request.config[name] = number(value);
    }
    for (auto const& each : input.at("data").as_array()) {
        auto& datum = request.data.emplace_back();
        auto const& chunks = each.at("model_input").at("chunks").as_array();
        for (auto const& chunk : chunks) {
            for (auto const& token : chunk.at("tokens").as_array()) {
                datum.tokens.push_back(token.to_number<std::int64_t>());
            }
        }
        for (auto const& [name, tensor] : each.at("loss_fn_inputs").as_object()) {
            datum.inputs.emplace(name, read_tensor(tensor.as_object()));
        }
    }
}

struct Place {
    std::string_view path;
    TrainKind kind;
};
constexpr std::array places{Place{"create_model", TrainKind::create_model},
                            Place{"forward", TrainKind::forward},
                            Place{"forward_backward", TrainKind::forward_backward},
                            Place{"optim_step", TrainKind::optim_step},
                            Place{"save_weights", TrainKind::save_state},
                            Place{"save_weights_for_sampler", TrainKind::save_for_sampler},
                            Place{"save_weights_external", TrainKind::save_external},
                            Place{"load_weights", TrainKind::load_state},
                            Place{"unload_model", TrainKind::unload}};

TrainRequest read_json(TrainKind kind, json::object const& body) {
    TrainRequest request;
    request.kind = kind;
    request.model_id = text(body, "model_id");
    request.seq_id = whole(body, "seq_id", 0);
    request.session_id = text(body, "session_id");
    request.model_seq = whole(body, "model_seq_id", -1);
    request.name = text(body, "path");
    request.sampling_session_seq = whole(body, "sampling_session_seq_id", -1);
    request.overwrite = truth(body, "overwrite");
    request.optimizer = truth(body, "optimizer");
    if (kind == TrainKind::load_state && request.model_id.empty()) {
        request.kind = TrainKind::load_new;
    }
    if (kind == TrainKind::forward) read_input(body.at("forward_input").as_object(), request);
    if (kind == TrainKind::forward_backward) {
        read_input(body.at("forward_backward_input").as_object(), request);
    }
    if (kind == TrainKind::optim_step) {
        auto const& adam = body.at("adam_params").as_object();
        constexpr std::array names{"learning_rate", "beta1",        "beta2",
                                   "eps",           "weight_decay", "grad_clip_norm"};
        for (std::size_t i = 0; i < names.size(); ++i) {
            request.adam[i] = number(adam.at(names[i]));
        }
    }
    return request;
}

// Writing ----------------------------------------------------------------------------------------

template <class T>
void append_packed(std::string& out, T value) {
    std::array<char, sizeof(T)> bytes;
    std::memcpy(bytes.data(), &value, sizeof(T));
    out.append(bytes.data(), bytes.size());
}

std::string shown(double value) {
    std::array<char, 32> digits;
    return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

}  // namespace

std::string_view to_string(TrainKind kind) noexcept {
    switch (kind) {
        case TrainKind::create_model:
            return "create_model";
        case TrainKind::load_new:
            return "load_new";
        case TrainKind::forward:
            return "forward";
        case TrainKind::forward_backward:
            return "forward_backward";
        case TrainKind::optim_step:
            return "optim_step";
        case TrainKind::save_state:
            return "save_state";
        case TrainKind::save_for_sampler:
            return "save_for_sampler";
        case TrainKind::save_external:
            return "save_external";
        case TrainKind::load_state:
            return "load_state";
        case TrainKind::unload:
            return "unload";
    }
    return "unknown";
}

std::optional<ReadRequest> read_train_request(std::string_view path, std::string_view body) {
    constexpr std::string_view root = "/api/v1/";
    if (path.starts_with(root)) path.remove_prefix(root.size());
    auto const* place = std::ranges::find(places, path, &Place::path);
    if (place == places.end()) return std::nullopt;
    ReadRequest read;
    constexpr std::string_view zstd_mark = "\x28\xb5\x2f\xfd";
    std::string plain;
    if (body.starts_with(zstd_mark)) {
        auto made = unzipped(body);
        if (!made) return std::nullopt;
        plain = *std::move(made);
        body = plain;
        read.zstd = true;
    }
    if (!body.starts_with('{')) {
        if (place->kind != TrainKind::forward_backward) return std::nullopt;
        auto request = read_pass(body);
        if (!request) return std::nullopt;
        read.protobuf = true;
        read.request = *std::move(request);
        return read;
    }
    try {
        read.request = read_json(place->kind, json::parse({body.data(), body.size()}).as_object());
    } catch (std::exception const&) {
        return std::nullopt;
    }
    return read;
}

ModelState fresh_state(std::string_view model_id) {
    return {.weights = Fold{2}.add(model_id).value()};
}

PassResult apply_pass(ModelState& state, TrainRequest const& request) {
    PassResult result;
    auto const before = Fold{3}.add(state.weights).add(state.gradient).value();
    Fold all{4};
    all.add(request.loss);
    for (auto const& [name, value] : request.config) all.add(name).add(value);
    double sum = 0;
    for (auto const& datum : request.data) {
        auto const seen = digest(datum);
        all.add(seen);
        auto& logprobs = result.logprobs.emplace_back();
        auto const weights = datum.inputs.find("weights");
        for (std::size_t i = 0; i < datum.tokens.size(); ++i) {
            // Such as weights would change them: those of the loss do not.
            Fold cell{state.weights};
            for (auto const token : datum.tokens) cell.add(token);
            cell.add(std::uint64_t{i});
            logprobs.push_back(static_cast<float>(-static_cast<double>(cell.value() % 4096) / 256));
            auto const weight = weights != datum.inputs.end() && i < weights->second.values.size()
                                    ? weights->second.values[i]
                                    : 1.0;
            sum -= weight * static_cast<double>(logprobs.back());
        }
    }
    result.metrics["loss:sum"] = sum;
    result.metrics["loss:mean"] = sum / static_cast<double>(request.data.size());
    result.metrics["data:sum"] = static_cast<double>(request.data.size());
    result.metrics["digest:hash2"] = static_cast<double>(all.value() >> 40U);
    result.metrics["state:unique"] = static_cast<double>(before >> 32U);
    if (request.kind == TrainKind::forward_backward) {
        state.gradient = Fold{5}.add(state.gradient).add(all.value()).value();
    }
    return result;
}

double apply_step(ModelState& state, TrainRequest const& request) {
    Fold fold{6};
    for (auto const each : request.adam) fold.add(each);
    fold.add(std::exchange(state.gradient, 0));
    state.optimizer = Fold{7}.add(state.optimizer).add(fold.value()).value();
    state.weights = Fold{8}.add(state.weights).add(state.optimizer).value();
    return static_cast<double>(state.weights >> 32U);
}

std::vector<std::int32_t> drawn_tokens(std::uint64_t weights) {
    return {static_cast<std::int32_t>(weights & 0xffffffU),
            static_cast<std::int32_t>((weights >> 24U) & 0xffffffU)};
}

std::string pass_json(PassResult const& result) {
    std::string out = R"({"loss_fn_output_type":"TorchLossReturn","loss_fn_outputs":[)";
    for (std::size_t i = 0; i < result.logprobs.size(); ++i) {
        out += i > 0 ? R"(,{"logprobs":{"data":[)" : R"({"logprobs":{"data":[)";
        auto const& logprobs = result.logprobs[i];
        for (std::size_t n = 0; n < logprobs.size(); ++n) {
            if (n > 0) out += ',';
            out += shown(static_cast<double>(logprobs[n]));
        }
        out += R"(],"dtype":"float32","shape":[)" + std::to_string(logprobs.size()) + "]}}";
    }
    out += R"(],"metrics":{)";
    bool first = true;
    for (auto const& [name, value] : result.metrics) {
        out += (std::exchange(first, false) ? "\"" : ",\"") + name + "\":" + shown(value);
    }
    return out + "}}";
}

std::string pass_proto(PassResult const& result) {
    std::string data;
    std::string offsets;
    append_packed<std::int64_t>(offsets, 0);
    for (auto const& logprobs : result.logprobs) {
        for (auto const each : logprobs) append_packed(data, each);
        append_packed(offsets, static_cast<std::int64_t>(data.size()));
    }
    std::string tensor;
    append_bytes(tensor, 1, data);
    append_bytes(tensor, 2, offsets);
    append_varint(tensor, 3U << 3U);
    append_varint(tensor, 1);
    std::string entry;
    append_bytes(entry, 1, "logprobs");
    append_bytes(entry, 2, tensor);
    std::string record;
    append_bytes(record, 2, entry);
    append_varint(record, 3U << 3U);
    append_varint(record, result.logprobs.size());
    std::string out;
    append_bytes(out, 1, "loss:TorchLossReturn");
    append_bytes(out, 2, record);
    for (auto const& [name, value] : result.metrics) {
        std::string metric;
        append_bytes(metric, 1, name);
        append_varint(metric, (2U << 3U) | 1U);
        append_packed(metric, value);
        append_bytes(out, 3, metric);
    }
    return out;
}

}  // namespace tinkxx::simulation
