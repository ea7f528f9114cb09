#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/types/tensor_data.hpp>

#include "wire/values/tensor.hpp"

#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// What the readers of protobuf answers share.
namespace tinkxx::wire::proto {

static_assert(std::endian::native == std::endian::little,
              "packed bytes are little-endian (R-WIRE-04)");

/// What is wrong, and where. Caught by `read` alone. A place is anything with `text()`.
struct Wrong {
    template <class Place>
    Wrong(Place const& where, std::string what, std::string is = {})
        : place{where.text()}, why{std::move(what)}, value{std::move(is)} {}

    std::string place;
    std::string why;
    std::string value;  ///< that stands there, if it is a single one
};

/// protozero asserts that a field has the type it is read as; a field of another type than the
/// schema's is one that nobody knows. So each case names both.
constexpr std::uint32_t bytes_field(protozero::pbf_tag_type tag) {
    return protozero::tag_and_type(tag, protozero::pbf_wire_type::length_delimited);
}
constexpr std::uint32_t varint_field(protozero::pbf_tag_type tag) {
    return protozero::tag_and_type(tag, protozero::pbf_wire_type::varint);
}
constexpr std::uint32_t fixed64_field(protozero::pbf_tag_type tag) {
    return protozero::tag_and_type(tag, protozero::pbf_wire_type::fixed64);
}

inline std::string_view bytes(protozero::pbf_reader& in) {
    auto const view = in.get_view();
    return {view.data(), view.size()};
}

/// An integer from `least` to `most`. protozero's readers of narrow types drop the upper bits.
template <class Place>
std::int64_t number_within(protozero::pbf_reader& in, std::int64_t least, std::int64_t most,
                           Place const& place, std::string_view name) {
    auto const number = in.get_int64();
    if (number >= least && number <= most) return number;
    Wrong wrong{place,
                std::string{name} + " " + std::to_string(number) + ", which is not from " +
                    std::to_string(least) + " to " + std::to_string(most),
                std::to_string(number)};
    (wrong.place += '/') += name;
    throw wrong;
}

/// A value of an enumeration, which may be one that nobody knows.
template <class Place>
std::int32_t enumerator(protozero::pbf_reader& in, Place const& place, std::string_view name) {
    using Limits = std::numeric_limits<std::int32_t>;
    return static_cast<std::int32_t>(number_within(in, Limits::min(), Limits::max(), place, name));
}

/// Numbers of fixed width, one after the other.
template <class T, class Place>
std::vector<T> packed(std::string_view bytes, Place const& place) {
    if (bytes.size() % sizeof(T) != 0) {
        throw Wrong{place, std::to_string(bytes.size()) + " bytes, which are no whole number of " +
                               std::to_string(sizeof(T)) + "-byte elements"};
    }
    std::vector<T> out(bytes.size() / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
}

using Numbers = std::variant<std::vector<float>, std::vector<std::int64_t>>;

/// The bytes of one element of a DType; 0 if nobody knows that type.
constexpr std::size_t item_bytes(std::int32_t dtype) {
    switch (dtype) {
        case 1:  // float32
        case 3:  // int32
            return 4;
        case 2:  // int64
            return 8;
        case 4:  // bfloat16
            return 2;
        default:
            return 0;
    }
}

/// The elements of a tensor, widened to one of the two types that users see.
template <class Place>
Numbers numbers(std::string_view bytes, std::int32_t dtype, Place const& place) {
    switch (dtype) {
        case 1:
            return packed<float>(bytes, place);
        case 2:
            return packed<std::int64_t>(bytes, place);
        case 3: {
            auto const narrow = packed<std::int32_t>(bytes, place);
            return std::vector<std::int64_t>(narrow.begin(), narrow.end());
        }
        case 4: {
            auto const upper = packed<std::uint16_t>(bytes, place);
            std::vector<float> out;
            out.reserve(upper.size());
            for (auto const half : upper) {
                out.push_back(std::bit_cast<float>(std::uint32_t{half} << 16U));
            }
            return out;
        }
        default:
            throw Wrong{place, "element type " + std::to_string(dtype) + ", which is unknown"};
    }
}

/// A TensorData message, dense or CSR.
template <class Place>
TensorData tensor(protozero::pbf_reader in, Place const& place) {
    std::string_view values;
    std::optional<std::pair<std::string_view, std::string_view>> indices;
    std::int32_t dtype = 0;
    std::vector<std::int64_t> shape;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes_field(1):
                values = bytes(in);
                indices.reset();
                break;
            case bytes_field(2): {
                values = {};
                indices.emplace();
                auto csr = in.get_message();
                while (csr.next()) {
                    switch (csr.tag_and_type()) {
                        case bytes_field(1):
                            values = bytes(csr);
                            break;
                        case bytes_field(2):
                            indices->first = bytes(csr);
                            break;
                        case bytes_field(3):
                            indices->second = bytes(csr);
                            break;
                        default:
                            csr.skip();
                    }
                }
                break;
            }
            case varint_field(3):
                dtype = enumerator(in, place, "dtype");
                break;
            case bytes_field(4):
                for (auto const dimension : in.get_packed_int64()) shape.push_back(dimension);
                break;
            case varint_field(4):
                shape.push_back(in.get_int64());
                break;
            default:
                in.skip();
        }
    }
    TensorData out;
    out.data = numbers(values, dtype, place);
    if (!shape.empty()) out.shape = std::move(shape);
    if (indices) {
        out.sparse_crow_indices = packed<std::int64_t>(indices->first, place);
        out.sparse_col_indices = packed<std::int64_t>(indices->second, place);
    }
    if (auto problem = tensor_problem(out); !problem.empty()) {
        throw Wrong{place, std::move(problem)};
    }
    return out;
}

/// An entry of a map from names to numbers.
inline std::pair<std::string_view, double> named_number(protozero::pbf_reader in) {
    std::pair<std::string_view, double> out;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case bytes_field(1):
                out.first = bytes(in);
                break;
            case fixed64_field(2):
                out.second = in.get_double();
                break;
            default:
                in.skip();
        }
    }
    return out;
}

inline ErrorDetails decoding_error(std::string_view operation, std::string place,
                                   std::string const& why) {
    ErrorDetails details;
    details.kind = ErrorKind::validation;
    details.message = std::string{operation} + ": the protobuf answer ";
    details.message += place.empty() ? why : "has at " + place + " " + why;
    details.message += "; the server may speak another version of the API";
    details.field = std::move(place);
    return details;
}

/// What `fn` makes of an answer, or the error that says where it is wrong.
template <class Fn>
auto read(std::string_view operation, Fn fn) -> Result<decltype(fn())> {
    try {
        return fn();
    } catch (Wrong const& wrong) {
        return decoding_error(operation, wrong.place, wrong.why);
    } catch (protozero::exception const& broken) {
        return decoding_error(operation, {}, std::string{"cannot be read ("} + broken.what() + ")");
    }
}

}  // namespace tinkxx::wire::proto
