#include "engine/files/safetensors.hpp"

#include "engine/common/failure.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <system_error>

namespace tinkxx::engine {

namespace {

struct TypeRow {
    DType dtype;
    std::size_t size;
    std::string_view name;
};

constexpr std::array type_rows{
    TypeRow{DType::f32, 4, "F32"},      TypeRow{DType::f16, 2, "F16"},
    TypeRow{DType::bf16, 2, "BF16"},    TypeRow{DType::f64, 8, "F64"},
    TypeRow{DType::i64, 8, "I64"},      TypeRow{DType::i32, 4, "I32"},
    TypeRow{DType::i16, 2, "I16"},      TypeRow{DType::i8, 1, "I8"},
    TypeRow{DType::u64, 8, "U64"},      TypeRow{DType::u32, 4, "U32"},
    TypeRow{DType::u16, 2, "U16"},      TypeRow{DType::u8, 1, "U8"},
    TypeRow{DType::boolean, 1, "BOOL"},
};

Error bad(std::string_view what, std::string_view why) {
    return invalid("safetensors: " + std::string(what) + ": " + std::string(why),
                   std::string(what));
}

std::optional<std::uint64_t> as_count(boost::json::value const& value) {
    if (auto const* number = value.if_uint64()) return *number;
    if (auto const* number = value.if_int64(); number != nullptr && *number >= 0) {
        return static_cast<std::uint64_t>(*number);
    }
    return std::nullopt;
}

std::optional<std::vector<std::uint64_t>> as_counts(boost::json::value const* value,
                                                    std::size_t limit) {
    auto const* array = value == nullptr ? nullptr : value->if_array();
    if (array == nullptr || array->size() > limit) return std::nullopt;
    std::vector<std::uint64_t> counts;
    for (auto const& item : *array) {
        auto const count = as_count(item);
        if (!count) return std::nullopt;
        counts.push_back(*count);
    }
    return counts;
}

/// Bytes of a tensor, or nothing if that does not fit 64 bits.
std::optional<std::uint64_t> byte_count(std::vector<std::uint64_t> const& shape, DType dtype) {
    // An empty dimension makes the product 0 whatever the others claim, so it goes first.
    if (std::ranges::find(shape, 0U) != shape.end()) return 0;
    std::uint64_t bytes = size_of(dtype);
    for (auto const dimension : shape) {
        if (dimension > std::numeric_limits<std::uint64_t>::max() / bytes) return std::nullopt;
        bytes *= dimension;
    }
    return bytes;
}

std::uint64_t read_le64(std::span<std::byte const> bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 8; i-- > 0;)
        value = value << 8U | std::to_integer<std::uint64_t>(bytes[i]);
    return value;
}

float half_to_float(std::uint16_t bits) {
    auto const sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16U;
    auto const exponent = static_cast<std::uint32_t>(bits >> 10U & 0x1fU);
    auto const fraction = static_cast<std::uint32_t>(bits & 0x3ffU);
    if (exponent == 0) {
        auto const magnitude = std::ldexp(static_cast<float>(fraction), -24);
        return sign != 0 ? -magnitude : magnitude;
    }
    auto const wide = exponent == 31 ? 255U : exponent + 112U;
    return std::bit_cast<float>(sign | wide << 23U | fraction << 13U);
}

template <class Word>
bool all_below(TensorView const& tensor, Word exponent_mask) {
    // No early exit: the loop is vectorised, and good files are the common case.
    bool bad_seen = false;
    auto const count = tensor.bytes.size() / sizeof(Word);
    for (std::size_t i = 0; i < count; ++i) {
        Word word{};
        std::memcpy(&word, tensor.bytes.data() + i * sizeof(Word), sizeof(Word));
        bad_seen |= (word & exponent_mask) == exponent_mask;
    }
    return !bad_seen;
}

}  // namespace

std::size_t size_of(DType dtype) noexcept {
    return type_rows[static_cast<std::size_t>(dtype)].size;
}

std::string_view to_string(DType dtype) noexcept {
    return type_rows[static_cast<std::size_t>(dtype)].name;
}

std::optional<DType> dtype_from(std::string_view name) noexcept {
    for (auto const& row : type_rows) {
        if (row.name == name) return row.dtype;
    }
    return std::nullopt;
}

namespace {

/// Where the bytes of a tensor lie in the data of its file.
struct Extent {
    std::uint64_t begin;
    std::uint64_t end;
    std::string_view name;
};

struct Entry {
    DType dtype{};
    std::vector<std::uint64_t> shape{};
    std::uint64_t begin{0};
    std::uint64_t end{0};
};

/// What the header says of a tensor, in a file with so many bytes of data.
Result<Entry> parse_entry(std::string const& name, boost::json::value const& entry,
                          std::size_t data_bytes) {
    auto const* fields = entry.if_object();
    if (fields == nullptr) return bad(name, "its entry is not an object");
    auto const* dtype_text = fields->if_contains("dtype");
    if (dtype_text == nullptr || !dtype_text->is_string()) return bad(name, "has no dtype");
    std::string_view const dtype_name = dtype_text->get_string();
    auto const dtype = dtype_from(dtype_name);
    if (!dtype) return bad(name, "unknown dtype " + std::string(dtype_name.substr(0, 32)));
    auto shape = as_counts(fields->if_contains("shape"), 16);
    if (!shape) return bad(name, "shape is not a list of at most 16 sizes");
    auto const offsets = as_counts(fields->if_contains("data_offsets"), 2);
    if (!offsets || offsets->size() != 2) return bad(name, "data_offsets is not two offsets");
    auto const [begin, end] = std::pair{(*offsets)[0], (*offsets)[1]};
    if (begin > end || end > data_bytes) {
        return bad(name, "data_offsets [" + std::to_string(begin) + ", " + std::to_string(end) +
                             "] leave the " + std::to_string(data_bytes) + " bytes of data");
    }
    auto const bytes = byte_count(*shape, *dtype);
    if (!bytes || *bytes != end - begin) {
        return bad(name, "its shape and dtype do not give the " + std::to_string(end - begin) +
                             " bytes of its data_offsets");
    }
    return Entry{.dtype = *dtype, .shape = *std::move(shape), .begin = begin, .end = end};
}

/// Fails unless each byte of the data belongs to one tensor.
Result<void> check_extents(std::vector<Extent> extents, std::size_t data_bytes) {
    std::ranges::sort(extents, [](Extent const& a, Extent const& b) {
        return std::pair{a.begin, a.end} < std::pair{b.begin, b.end};
    });
    std::uint64_t covered = 0;
    for (auto const& extent : extents) {
        if (extent.begin < covered) return bad(extent.name, "overlaps another tensor");
        if (extent.begin > covered) {
            return bad(extent.name, "lies behind bytes that belong to no tensor");
        }
        covered = extent.end;
    }
    if (covered != data_bytes) return bad("data", "ends in bytes that belong to no tensor");
    return {};
}

}  // namespace

Result<TensorMap> parse_safetensors(std::span<std::byte const> file) {
    if (file.size() < 8) return bad("header", "the file is shorter than 8 bytes");
    auto const header_bytes = read_le64(file);
    if (header_bytes > file.size() - 8) {
        return bad("header", "claims " + std::to_string(header_bytes) + " bytes in a file of " +
                                 std::to_string(file.size()));
    }
    if (header_bytes > max_header_bytes) {
        return bad("header", "has " + std::to_string(header_bytes) + " bytes; at most " +
                                 std::to_string(max_header_bytes) + " are read");
    }
    auto const data = file.subspan(8 + header_bytes);
    boost::json::error_code code;
    auto const header =
        boost::json::parse({reinterpret_cast<char const*>(file.data() + 8), header_bytes}, code);
    if (code) return bad("header", "is not JSON: " + code.message());
    if (!header.is_object()) return bad("header", "is not a JSON object");

    TensorMap tensors;
    std::vector<Extent> extents;
    for (auto const& [key, value] : header.get_object()) {
        std::string const name{std::string_view{key}};
        if (name == "__metadata__") continue;
        auto entry = parse_entry(name, value, data.size());
        if (!entry) return entry.error();
        auto const [begin, end] = std::pair{entry->begin, entry->end};
        auto const [place, fresh] =
            tensors.emplace(name, TensorView{.dtype = entry->dtype,
                                             .shape = std::move(entry->shape),
                                             .bytes = data.subspan(begin, end - begin)});
        if (!fresh) return bad(name, "is listed twice");
        extents.push_back({begin, end, place->first});
    }
    if (auto const whole = check_extents(std::move(extents), data.size()); !whole) {
        return whole.error();
    }
    return tensors;
}

Result<SafetensorsFile> SafetensorsFile::open(std::filesystem::path const& path) {
    auto file = MappedFile::open(path, Access::read);
    if (!file) return file.error();
    auto tensors = parse_safetensors(file->bytes());
    if (!tensors) {
        return invalid(path.string() + ": " + tensors.error().what(),
                       std::string(tensors.error().field()));
    }
    SafetensorsFile result;
    result.file_ = *std::move(file);
    result.tensors_ = *std::move(tensors);
    return result;
}

Result<std::map<std::string, std::string>> parse_index(std::string_view text) {
    auto const fail = [](std::string_view why) {
        return invalid("model.safetensors.index.json: " + std::string(why), "weight_map");
    };
    boost::json::error_code code;
    auto const root = boost::json::parse({text.data(), text.size()}, code);
    if (code) return fail("is not JSON: " + code.message());
    auto const* object = root.if_object();
    auto const* weight_map = object == nullptr ? nullptr : object->if_contains("weight_map");
    if (weight_map == nullptr || !weight_map->is_object()) return fail("has no weight_map");
    std::map<std::string, std::string> result;
    for (auto const& [key, value] : weight_map->get_object()) {
        auto const* file = value.if_string();
        std::string const name = file == nullptr ? "" : std::string(std::string_view(*file));
        // A plain name keeps the index inside its folder; the suffix keeps it off itself.
        if (!name.ends_with(".safetensors") || name.find('/') != std::string::npos ||
            name.find('\0') != std::string::npos || name.starts_with('.')) {
            return fail("tensor " + std::string(std::string_view(key)) +
                        " must name a .safetensors file of the same folder");
        }
        result.emplace(std::string_view(key), name);
    }
    return result;
}

namespace {

/// The names of the files with weights in a folder without an index.
Result<std::vector<std::string>> weight_files(std::filesystem::path const& folder) {
    std::vector<std::string> names;
    std::error_code code;
    for (std::filesystem::directory_iterator entry{folder, code}, end; !code && entry != end;
         entry.increment(code)) {
        auto const name = entry->path().filename().string();
        // An adapter or the state of an optimizer may lie beside the weights.
        if (name.ends_with(".safetensors") && !name.starts_with("adapter_") &&
            !name.starts_with("optimizer")) {
            names.push_back(name);
        }
    }
    if (code) {
        return invalid("cannot read folder " + folder.string() + ": " + code.message(),
                       folder.filename().string());
    }
    return names;
}

}  // namespace

Result<TensorFolder> TensorFolder::open(std::filesystem::path const& folder, Access access) {
    if (auto const there = check_folder(folder); !there) return there.error();
    TensorFolder result;
    auto const index_path = folder / "model.safetensors.index.json";
    std::map<std::string, std::string> wanted;
    std::vector<std::string> names;
    bool const indexed = is_named(index_path);
    if (indexed) {
        auto const text = read_text(index_path, max_header_bytes);
        if (!text) return text.error();
        auto index = parse_index(*text);
        if (!index) return index.error();
        wanted = *std::move(index);
        for (auto const& [tensor, file] : wanted) names.push_back(file);
    } else {
        auto found = weight_files(folder);
        if (!found) return found.error();
        names = *std::move(found);
    }
    std::ranges::sort(names);
    names.erase(std::ranges::unique(names).begin(), names.end());
    if (names.empty()) {
        return invalid(folder.string() + " holds no *.safetensors file", "model.safetensors");
    }
    for (auto const& name : names) {
        auto file = MappedFile::open(folder / name, access);
        if (!file) return file.error();
        auto tensors = parse_safetensors(file->bytes());
        if (!tensors) {
            return invalid((folder / name).string() + ": " + tensors.error().what(),
                           std::string(tensors.error().field()));
        }
        for (auto& [tensor, view] : *tensors) {
            if (indexed) {
                auto const entry = wanted.find(tensor);
                if (entry == wanted.end() || entry->second != name) continue;
            }
            if (!result.tensors_.emplace(tensor, std::move(view)).second) {
                return invalid(folder.string() + ": tensor " + tensor + " is in two files", tensor);
            }
        }
        result.files_.push_back(*std::move(file));
    }
    for (auto const& [tensor, file] : wanted) {
        if (!result.tensors_.contains(tensor)) {
            auto message = folder.string();
            message.append(": tensor ").append(tensor).append(" is not in ").append(file);
            message.append(", where the index puts it");
            return invalid(std::move(message), tensor);
        }
    }
    return result;
}

Result<void> check_finite(TensorView const& tensor, std::string_view name) {
    bool finite = true;
    if (tensor.dtype == DType::f32) {
        finite = all_below<std::uint32_t>(tensor, 0x7f800000U);
    } else if (tensor.dtype == DType::bf16) {
        finite = all_below<std::uint16_t>(tensor, 0x7f80U);
    } else if (tensor.dtype == DType::f16) {
        finite = all_below<std::uint16_t>(tensor, 0x7c00U);
    }
    if (!finite) return bad(name, "holds NaN or infinity");
    return {};
}

Result<std::vector<float>> widen_tensor(TensorView const& tensor, std::string_view name) {
    if (auto const finite = check_finite(tensor, name); !finite) return finite.error();
    std::vector<float> values(tensor.count());
    if (tensor.dtype == DType::f32) {
        if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
        return values;
    }
    if (tensor.dtype != DType::f16 && tensor.dtype != DType::bf16) {
        return bad(name, "has dtype " + std::string(to_string(tensor.dtype)) +
                             "; F32, F16 or BF16 is needed");
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
        std::uint16_t bits{};
        std::memcpy(&bits, tensor.bytes.data() + 2 * i, 2);
        values[i] = tensor.dtype == DType::f16
                        ? half_to_float(bits)
                        : std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
    }
    return values;
}

}  // namespace tinkxx::engine
