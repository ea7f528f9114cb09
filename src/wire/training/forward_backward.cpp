#include "base/common/invalid.hpp"
#include "wire/json/json.hpp"
#include "wire/training/training.hpp"
#include "wire/values/model_input.hpp"
#include "wire/values/tensor.hpp"

#include <zstd.h>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <new>

namespace tinkxx::wire {

namespace {

static_assert(std::endian::native == std::endian::little,
              "packed bytes are little-endian (R-WIRE-04)");

// A message of protobuf may not be longer, and that is what servers take it for.
constexpr std::size_t most_proto_bytes = std::numeric_limits<std::int32_t>::max();

ErrorDetails refusal(ForwardBackward const& request, std::string field, std::string value,
                     std::string const& why) {
    return base::invalid(request.forward_only ? "forward" : "forward_backward", std::move(field),
                         std::move(value), why);
}

std::string datum_field(std::size_t index, std::string_view rest) {
    return "data/" + std::to_string(index) + "/" + std::string{rest};
}

// Sizes: everything is counted before it is written, so that nothing is moved afterwards.

std::size_t varint_bytes(std::uint64_t number) {
    return (static_cast<std::size_t>(std::bit_width(number | 1U)) + 6) / 7;
}
// All fields have numbers below 16, so that a tag is one byte.
std::size_t field_bytes(std::size_t content) { return 1 + varint_bytes(content) + content; }
std::size_t scalar_bytes(std::uint64_t number) { return 1 + varint_bytes(number); }
// A scalar with its default value does not travel.
std::size_t implicit_bytes(std::size_t content) { return content == 0 ? 0 : field_bytes(content); }
std::size_t implicit_scalar(std::uint64_t number) { return number == 0 ? 0 : scalar_bytes(number); }

std::uint64_t varint_of(std::int64_t number) { return static_cast<std::uint64_t>(number); }

template <class T>
std::string_view bytes_of(std::span<T const> numbers) {
    return {reinterpret_cast<char const*>(numbers.data()), numbers.size_bytes()};
}
std::string_view values_of(TensorView const& tensor) {
    return std::visit([](auto const& numbers) { return bytes_of(numbers); }, tensor.data);
}

std::size_t shape_bytes(std::span<std::int64_t const> shape) {
    std::size_t total = 0;
    for (auto const dimension : shape) total += varint_bytes(varint_of(dimension));
    return total;
}

struct Csr {
    explicit Csr(TensorView const& tensor)
        : values{values_of(tensor)},
          crow{bytes_of(tensor.sparse_crow_indices.value_or(std::span<std::int64_t const>{}))},
          col{bytes_of(tensor.sparse_col_indices.value_or(std::span<std::int64_t const>{}))} {}

    [[nodiscard]] std::size_t size() const {
        return implicit_bytes(values.size()) + implicit_bytes(crow.size()) +
               implicit_bytes(col.size());
    }

    std::string_view values;
    std::string_view crow;
    std::string_view col;
};

std::size_t tensor_bytes(TensorView const& tensor) {
    auto total =
        tensor.sparse() ? field_bytes(Csr{tensor}.size()) : field_bytes(values_of(tensor).size());
    total += 2;  // dtype
    if (tensor.shape) total += implicit_bytes(shape_bytes(*tensor.shape));
    return total;
}

std::size_t image_bytes(ImageChunk const& image) {
    return implicit_bytes(image.data.size()) + field_bytes(to_string(image.format).size()) +
           (image.expected_tokens ? scalar_bytes(varint_of(*image.expected_tokens)) : 0);
}

// What is inside of the chunk's one member.
std::size_t chunk_bytes(ModelInputChunk const& chunk) {
    if (auto const* text = std::get_if<EncodedTextChunk>(&chunk)) {
        return implicit_bytes(text->tokens.size() * sizeof(Token));
    }
    if (auto const* image = std::get_if<ImageChunk>(&chunk)) return image_bytes(*image);
    if (auto const* audio = std::get_if<DmelChunk>(&chunk)) {
        return implicit_bytes(audio->dmel.size());
    }
    return 0;
}

std::size_t span_bytes(ProvenanceSpan const& span) {
    return implicit_bytes(span.sequence_id.size()) + implicit_scalar(varint_of(span.offset)) +
           implicit_scalar(varint_of(span.length));
}

std::size_t entry_bytes(std::string_view name, std::size_t value) {
    return field_bytes(name.size()) + field_bytes(value);
}

std::size_t datum_bytes(Datum const& datum) {
    std::size_t total = 0;
    for (auto const& chunk : datum.model_input.chunks) {
        total += field_bytes(field_bytes(chunk_bytes(chunk)));
    }
    for (auto const& [name, input] : datum.loss_fn_inputs) {
        total += field_bytes(entry_bytes(name, tensor_bytes(input.view())));
    }
    for (auto const* spans : {&datum.model_input_spans, &datum.loss_fn_input_spans}) {
        for (auto const& span : *spans) total += field_bytes(field_bytes(span_bytes(span)));
    }
    return total;
}

constexpr std::size_t double_field_bytes = 9;

// What is inside of a LossConfigValue.
std::size_t config_value_bytes(LossConfigValue const& value) {
    if (auto const* text = std::get_if<std::string>(&value)) return field_bytes(text->size());
    return double_field_bytes;
}

// Takes what is written as it is.
class PlainSink {
public:
    explicit PlainSink(std::size_t size) { out_.reserve(size); }

    void write(std::string_view bytes) { out_ += bytes; }
    Result<std::string> end() { return std::move(out_); }

private:
    std::string out_{};
};

// Compresses what is written, piece by piece: the whole is never there uncompressed.
class ZstdSink {
public:
    static constexpr int window_log = 19;

    explicit ZstdSink(std::size_t size) {
        if (!context_) throw std::bad_alloc{};
        // Room that is never touched costs nothing; growing would cost a copy.
        out_.reserve(::ZSTD_compressBound(size));
        ::ZSTD_CCtx_setPledgedSrcSize(context_.get(), size);
        // What is alike in a body stands close together; a longer memory finds nothing more.
        if (size > (std::size_t{1} << window_log)) {
            ::ZSTD_CCtx_setParameter(context_.get(), ::ZSTD_c_windowLog, window_log);
        }
    }

    void write(std::string_view bytes) { step(bytes, ZSTD_e_continue); }

    Result<std::string> end() {
        step({}, ZSTD_e_end);
        out_.resize(used_);
        if (failed_ == 0) return std::move(out_);
        ErrorDetails details;
        details.kind = ErrorKind::usage;
        details.message = std::string{"forward_backward: the body cannot be compressed: "} +
                          ::ZSTD_getErrorName(failed_) +
                          "; ClientOptions::submit_encoding = SubmitEncoding::json does without";
        return details;
    }

private:
    struct Free {
        void operator()(::ZSTD_CCtx* context) const { ::ZSTD_freeCCtx(context); }
    };

    void step(std::string_view bytes, ::ZSTD_EndDirective what) {
        ::ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
        for (;;) {
            if (failed_ != 0) return;
            if (out_.size() - used_ < ::ZSTD_CStreamOutSize() / 2) {
                out_.resize(out_.size() + ::ZSTD_CStreamOutSize());
            }
            ::ZSTD_outBuffer out{out_.data(), out_.size(), used_};
            auto const left = ::ZSTD_compressStream2(context_.get(), &out, &in, what);
            used_ = out.pos;
            if (::ZSTD_isError(left) != 0) {
                failed_ = left;
            } else if (what == ZSTD_e_end ? left == 0 : in.pos == in.size) {
                return;
            }
        }
    }

    std::unique_ptr<::ZSTD_CCtx, Free> context_{::ZSTD_createCCtx()};
    std::string out_{};
    std::size_t used_{0};
    std::size_t failed_{0};
};

// Writes messages whose sizes were counted before.
template <class Sink>
class ProtoOut {
public:
    explicit ProtoOut(Sink& sink) : sink_{&sink} {}

    void request(ForwardBackward const& request) {
        implicit_text(1, request.model_id);
        if (request.seq_id != 0) scalar(2, varint_of(request.seq_id));
        for (auto const& one : request.data) {
            open(3, datum_bytes(one));
            datum(one);
        }
        implicit_text(4, request.loss->name());
        for (auto const& [name, value] : request.loss->config()) {
            auto const* number = std::get_if<double>(&value);
            if (number == nullptr) continue;
            open(5, field_bytes(name.size()) + double_field_bytes);
            text(1, name);
            fixed64(2, *number);
        }
        if (request.forward_only) scalar(6, 1);
        for (auto const& [name, value] : request.loss->config()) {
            auto const inside = config_value_bytes(value);
            open(7, entry_bytes(name, inside));
            text(1, name);
            open(2, inside);
            if (auto const* number = std::get_if<double>(&value)) {
                fixed64(1, *number);
            } else {
                text(2, std::get<std::string>(value));
            }
        }
    }

private:
    void varint(std::uint64_t number) {
        std::array<char, 10> bytes;
        std::size_t size = 0;
        for (; number >= 0x80; number >>= 7U) {
            bytes[size++] = static_cast<char>((number & 0x7fU) | 0x80U);
        }
        bytes[size++] = static_cast<char>(number);
        sink_->write({bytes.data(), size});
    }
    void tag(unsigned field, unsigned type) {
        auto const byte = static_cast<char>(field << 3U | type);
        sink_->write({&byte, 1});
    }
    // What follows is the content of a field, of that size.
    void open(unsigned field, std::size_t size) {
        tag(field, 2);
        varint(size);
    }
    void text(unsigned field, std::string_view bytes) {
        open(field, bytes.size());
        sink_->write(bytes);
    }
    void implicit_text(unsigned field, std::string_view bytes) {
        if (!bytes.empty()) text(field, bytes);
    }
    void scalar(unsigned field, std::uint64_t number) {
        tag(field, 0);
        varint(number);
    }
    void fixed64(unsigned field, double number) {
        tag(field, 1);
        std::array<char, 8> bytes;
        std::memcpy(bytes.data(), &number, bytes.size());
        sink_->write({bytes.data(), bytes.size()});
    }

    void datum(Datum const& datum) {
        for (auto const& one : datum.model_input.chunks) {
            auto const inside = chunk_bytes(one);
            open(1, field_bytes(inside));
            chunk(one, inside);
        }
        for (auto const& [name, input] : datum.loss_fn_inputs) {
            auto const view = input.view();
            auto const inside = tensor_bytes(view);
            open(2, entry_bytes(name, inside));
            text(1, name);
            open(2, inside);
            tensor(view);
        }
        unsigned field = 3;
        for (auto const* spans : {&datum.model_input_spans, &datum.loss_fn_input_spans}) {
            for (auto const& one : *spans) {
                auto const inside = span_bytes(one);
                open(field, field_bytes(inside));
                open(one.kind == ProvenanceSpan::Kind::prompt ? 1 : 2, inside);
                implicit_text(1, one.sequence_id);
                if (one.offset != 0) scalar(2, varint_of(one.offset));
                if (one.length != 0) scalar(3, varint_of(one.length));
            }
            ++field;
        }
    }
    void chunk(ModelInputChunk const& chunk, std::size_t inside) {
        if (auto const* words = std::get_if<EncodedTextChunk>(&chunk)) {
            open(1, inside);
            implicit_text(1, bytes_of(std::span<Token const>{words->tokens}));
        } else if (auto const* image = std::get_if<ImageChunk>(&chunk)) {
            open(2, inside);
            implicit_text(1, image->data);
            text(2, to_string(image->format));
            if (image->expected_tokens) scalar(3, varint_of(*image->expected_tokens));
        } else if (auto const* audio = std::get_if<DmelChunk>(&chunk)) {
            open(3, inside);
            implicit_text(1, audio->dmel);
        }
    }
    void tensor(TensorView const& tensor) {
        if (tensor.sparse()) {
            Csr const csr{tensor};
            open(2, csr.size());
            implicit_text(1, csr.values);
            implicit_text(2, csr.crow);
            implicit_text(3, csr.col);
        } else {
            text(1, values_of(tensor));
        }
        scalar(3, tensor.dtype() == DType::float32 ? 1 : 2);
        if (!tensor.shape || tensor.shape->empty()) return;
        open(4, shape_bytes(*tensor.shape));
        for (auto const dimension : *tensor.shape) varint(varint_of(dimension));
    }

    Sink* sink_;
};

// What protobuf has no words for.
std::optional<ErrorDetails> proto_problem(ForwardBackward const& request) {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    if (request.seq_id < 0 || request.seq_id > most) {
        return refusal(request, "seq_id", std::to_string(request.seq_id),
                       "the sequence number " + std::to_string(request.seq_id) +
                           " does not fit into 32 bits; begin a new training client");
    }
    for (std::size_t i = 0; i < request.data.size(); ++i) {
        auto const& chunks = request.data[i].model_input.chunks;
        for (std::size_t k = 0; k < chunks.size(); ++k) {
            auto const place = "model_input/chunks/" + std::to_string(k);
            if (std::holds_alternative<ImageAssetPointerChunk>(chunks[k])) {
                return refusal(request, datum_field(i, place), {},
                               "datum " + std::to_string(i) + " has at chunk " + std::to_string(k) +
                                   " an image pointer, which protobuf requests cannot carry; send "
                                   "the image itself, or choose JSON by an option of the client");
            }
            auto const* image = std::get_if<ImageChunk>(&chunks[k]);
            if (image != nullptr && image->expected_tokens &&
                (*image->expected_tokens < 0 || *image->expected_tokens > most)) {
                return refusal(request, datum_field(i, place + "/expected_tokens"),
                               std::to_string(*image->expected_tokens),
                               "datum " + std::to_string(i) + " has at chunk " + std::to_string(k) +
                                   " an image of " + std::to_string(*image->expected_tokens) +
                                   " tokens; a number of tokens has 31 bits");
            }
        }
    }
    return std::nullopt;
}

template <class Sink>
Result<std::string> written(ForwardBackward const& request, std::size_t size) {
    Sink sink{size};
    ProtoOut<Sink>{sink}.request(request);
    return sink.end();
}

Result<EncodedBody> encode_proto(ForwardBackward const& request, Compression compression) {
    if (auto problem = proto_problem(request)) return std::move(*problem);
    auto const size = proto_bytes(request);
    if (size > most_proto_bytes) {
        return refusal(
            request, "data", std::to_string(size),
            "the request has " + std::to_string(size) +
                " bytes; protobuf holds at most 2 GiB, so make the largest datum smaller");
    }
    auto const zstd = compression == Compression::zstd;
    auto body = zstd ? written<ZstdSink>(request, size) : written<PlainSink>(request, size);
    if (!body) return body.error();
    return EncodedBody{.bytes = std::move(*body),
                       .content_type = "application/x-protobuf",
                       .content_encoding = zstd ? "zstd" : ""};
}

// At least what the request takes as JSON. Room that is never touched costs nothing.
std::size_t json_room(ForwardBackward const& request) {
    std::size_t total = 4096;
    for (auto const& datum : request.data) {
        total += 256;
        for (auto const& chunk : datum.model_input.chunks) {
            if (auto const* text = std::get_if<EncodedTextChunk>(&chunk)) {
                total += 64 + 12 * text->tokens.size();
            } else {
                total += 256 + 2 * chunk_bytes(chunk);
            }
        }
        for (auto const& [name, input] : datum.loss_fn_inputs) {
            auto const view = input.view();
            total += 256 + name.size() + (view.dtype() == DType::float32 ? 25 : 21) * view.size();
            if (view.sparse_crow_indices) total += 21 * view.sparse_crow_indices->size();
            if (view.sparse_col_indices) total += 21 * view.sparse_col_indices->size();
        }
    }
    return total;
}

Result<EncodedBody> encode_json(ForwardBackward const& request) {
    for (std::size_t i = 0; i < request.data.size(); ++i) {
        auto const& datum = request.data[i];
        if (datum.model_input_spans.empty() && datum.loss_fn_input_spans.empty()) continue;
        return refusal(request, datum_field(i, "model_input_spans"), {},
                       "datum " + std::to_string(i) +
                           " has provenance spans, which JSON requests cannot carry; leave them "
                           "out, or use a server that takes protobuf");
    }
    EncodedBody body{.content_type = "application/json"};
    body.bytes.reserve(json_room(request));
    JsonOut json{body.bytes};
    json.open_object();
    json.key(request.forward_only ? "forward_input" : "forward_backward_input");
    json.open_object();
    json.key("data");
    json.open_array();
    for (auto const& datum : request.data) {
        json.open_object();
        json.key("model_input");
        write(json, datum.model_input);
        json.key("loss_fn_inputs");
        json.open_object();
        for (auto const& [name, input] : datum.loss_fn_inputs) {
            json.key(std::string_view{name});
            write(json, input.view());
        }
        json.close_object();
        json.close_object();
    }
    json.close_array();
    json.member("loss_fn", request.loss->name());
    if (!request.loss->config().empty()) {
        json.key("loss_fn_config");
        json.open_object();
        for (auto const& [name, value] : request.loss->config()) {
            json.key(std::string_view{name});
            std::visit([&json](auto const& content) { json.value(content); }, value);
        }
        json.close_object();
    }
    json.close_object();
    json.member("model_id", request.model_id);
    json.member("seq_id", request.seq_id);
    json.close_object();
    return body;
}

ErrorDetails not_ours() {
    return {.kind = ErrorKind::usage,
            .message =
                "forward_backward: the body to be numbered anew is not one that was written "
                "here"};
}

/// The number is the last member.
Result<std::string> renumbered_json(std::string_view bytes, std::int64_t seq_id) {
    constexpr std::string_view key = R"("seq_id":)";
    auto const at = bytes.rfind(key);
    if (at == std::string_view::npos) return not_ours();
    return std::string{bytes.substr(0, at + key.size())} + std::to_string(seq_id) + '}';
}

/// The number is the second field, behind the id of the model.
template <class Sink>
Result<std::string> renumbered_proto(std::string_view bytes, std::int64_t seq_id) {
    std::size_t at = 0;
    std::size_t before = 0;
    try {
        protozero::pbf_reader in{bytes.data(), bytes.size()};
        auto const place = [&] { return bytes.size() - in.length(); };
        if (in.next(1)) in.skip();
        before = place();
        if (!in.next(2)) return not_ours();
        in.skip();
        at = place();
    } catch (protozero::exception const&) {
        return not_ours();
    }
    std::string number;
    protozero::pbf_writer{number}.add_int32(2, static_cast<std::int32_t>(seq_id));
    Sink sink{before + number.size() + bytes.size() - at};
    sink.write(bytes.substr(0, before));
    sink.write(number);
    sink.write(bytes.substr(at));
    return sink.end();
}

std::optional<std::string> decompressed(std::string_view bytes) {
    auto const size = ::ZSTD_getFrameContentSize(bytes.data(), bytes.size());
    if (size > most_proto_bytes) return std::nullopt;  // also what is said about no frame
    std::string out(static_cast<std::size_t>(size), '\0');
    auto const got = ::ZSTD_decompress(out.data(), out.size(), bytes.data(), bytes.size());
    if (got != out.size()) return std::nullopt;
    return out;
}

}  // namespace

std::size_t proto_bytes(ForwardBackward const& request) {
    auto total = implicit_bytes(request.model_id.size()) +
                 implicit_scalar(varint_of(request.seq_id)) +
                 implicit_bytes(request.loss->name().size());
    for (auto const& datum : request.data) total += field_bytes(datum_bytes(datum));
    for (auto const& [name, value] : request.loss->config()) {
        if (std::holds_alternative<double>(value)) {
            total += field_bytes(field_bytes(name.size()) + double_field_bytes);
        }
        total += field_bytes(entry_bytes(name, config_value_bytes(value)));
    }
    if (request.forward_only) total += 2;
    return total;
}

Result<EncodedBody> encode_forward_backward(ForwardBackward const& request, Encoding encoding,
                                            Compression compression) {
    if (encoding == Encoding::json) return encode_json(request);
    return encode_proto(request, compression);
}

Result<std::string> renumber_forward_backward(std::string_view bytes, Encoding encoding,
                                              Compression compression, std::int64_t seq_id) {
    if (encoding == Encoding::json) return renumbered_json(bytes, seq_id);
    if (compression == Compression::none) return renumbered_proto<PlainSink>(bytes, seq_id);
    auto const plain = decompressed(bytes);
    if (!plain) return not_ours();
    return renumbered_proto<ZstdSink>(*plain, seq_id);
}

std::string_view forward_backward_path(Encoding encoding, bool forward_only) noexcept {
    return encoding == Encoding::json && forward_only ? "/api/v1/forward"
                                                      : "/api/v1/forward_backward";
}

}  // namespace tinkxx::wire
