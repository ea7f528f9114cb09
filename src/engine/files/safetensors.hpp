#pragma once

#include <tinkxx/result.hpp>

#include "engine/files/mapped_file.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::engine {

/// Element types of a safetensors file. Those the engine computes with are the first three.
enum class DType : std::uint8_t {
    f32,
    f16,
    bf16,
    f64,
    i64,
    i32,
    i16,
    i8,
    u64,
    u32,
    u16,
    u8,
    boolean
};

[[nodiscard]] std::size_t size_of(DType dtype) noexcept;
/// The name in a safetensors header, e.g. "BF16".
[[nodiscard]] std::string_view to_string(DType dtype) noexcept;
[[nodiscard]] std::optional<DType> dtype_from(std::string_view name) noexcept;

/// One tensor inside a mapped file. The bytes need not be aligned to the element.
struct TensorView {
    DType dtype{DType::f32};
    std::vector<std::uint64_t> shape{};
    std::span<std::byte const> bytes{};

    [[nodiscard]] std::uint64_t count() const noexcept { return bytes.size() / size_of(dtype); }
};

using TensorMap = std::map<std::string, TensorView, std::less<>>;

/// The longest header that is read. The largest published models need about a tenth of it.
inline constexpr std::uint64_t max_header_bytes = 32U << 20U;

/// Checks a whole safetensors file and returns views into it.
///
/// Nothing in the file is trusted: header length, names, types, shapes and offsets must agree with
/// one another and with the length of the file, and the tensors must cover the data part exactly,
/// without overlap or hole. Fails with a validation error that names the tensor.
Result<TensorMap> parse_safetensors(std::span<std::byte const> file);

/// A safetensors file in memory, read rather than mapped (`Access`).
class SafetensorsFile {
public:
    static Result<SafetensorsFile> open(std::filesystem::path const& path);

    [[nodiscard]] TensorMap const& tensors() const noexcept { return tensors_; }

private:
    MappedFile file_{};
    TensorMap tensors_{};
};

/// All tensors of a model folder: one file, several files, or several with an index.
class TensorFolder {
public:
    /// Reads `model.safetensors.index.json` if there is one, else every `*.safetensors` file.
    /// An index may name only files of its own folder. Fails if a tensor is in two files.
    static Result<TensorFolder> open(std::filesystem::path const& folder,
                                     Access access = Access::map);

    [[nodiscard]] TensorMap const& tensors() const noexcept { return tensors_; }

private:
    std::vector<MappedFile> files_{};
    TensorMap tensors_{};
};

/// Tensor name to file name, from the text of an index. Fails unless every file name is a plain
/// `*.safetensors` name.
Result<std::map<std::string, std::string>> parse_index(std::string_view text);

/// The elements of a float32, float16 or bfloat16 tensor, widened exactly.
/// Fails for another type and, with `name` in the message, for NaN and infinity.
Result<std::vector<float>> widen_tensor(TensorView const& tensor, std::string_view name);

/// Fails if a float tensor holds NaN or infinity.
Result<void> check_finite(TensorView const& tensor, std::string_view name);

}  // namespace tinkxx::engine
