#pragma once

#include <tinkxx/types/model_input.hpp>
#include <tinkxx/types/tensor_data.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tinkxx {

/// A view of numbers that the caller owns, in the layout of `TensorData`. They are copied once,
/// when the call that takes the tensor encodes its request, which is before it returns.
struct TensorView {
    std::variant<std::span<float const>, std::span<std::int64_t const>> data{};
    std::optional<std::span<std::int64_t const>> shape{};
    std::optional<std::span<std::int64_t const>> sparse_crow_indices{};
    std::optional<std::span<std::int64_t const>> sparse_col_indices{};

    [[nodiscard]] DType dtype() const noexcept {
        return data.index() == 0 ? DType::float32 : DType::int64;
    }
    [[nodiscard]] bool sparse() const noexcept { return sparse_crow_indices.has_value(); }
    /// The number of elements; for a CSR matrix, of stored elements.
    [[nodiscard]] std::size_t size() const noexcept;
};

[[nodiscard]] TensorView view(TensorData const& tensor) noexcept;
/// A copy of what a view shows.
[[nodiscard]] TensorData to_tensor_data(TensorView const& view);
/// The same numbers in the same layout.
[[nodiscard]] bool operator==(TensorView const& a, TensorView const& b) noexcept;

/// A dense matrix in CSR form, storing the cells that differ from `pad`. Throws `ValidationError`
/// if the tensor is already sparse or is not a matrix.
[[nodiscard]] TensorData to_csr(TensorData const& dense, double pad = 0);
/// The dense form of a CSR matrix; cells that are not stored become `pad`.
[[nodiscard]] TensorData to_dense(TensorData const& csr, double pad = 0);
/// The CSR form of a matrix if that is smaller, that is, if (rows + 1) + 2 * stored < rows *
/// columns; otherwise, and for a tensor that is not a dense matrix, the tensor unchanged. Some
/// servers do not accept CSR.
[[nodiscard]] TensorData csr_if_smaller(TensorData tensor, double pad = 0);

/// The values of one loss input.
///
/// A `TensorData` or a `TensorView` is sent unchanged. A plain list, or a list of rows of equal
/// length, is converted to the element type that the service expects for the input's name; for
/// other names its own element type is kept.
class LossInput {
public:
    LossInput(TensorData tensor) : value_{std::move(tensor)} {}
    /// Keeps no copy: the viewed numbers must stay valid until the call that sends them has
    /// returned.
    LossInput(TensorView view) : value_{view} {}
    LossInput(std::span<float const> numbers) : value_{TensorView{.data = numbers}} {}
    LossInput(std::span<std::int64_t const> numbers) : value_{TensorView{.data = numbers}} {}

    LossInput(std::vector<float> list);
    LossInput(std::vector<double> list);
    LossInput(std::vector<std::int64_t> list);
    LossInput(std::vector<std::int32_t> const& list);
    LossInput(std::initializer_list<double> list);
    /// Throw `ValidationError` if a row is longer than another.
    LossInput(std::vector<std::vector<float>> const& rows);
    LossInput(std::vector<std::vector<double>> const& rows);
    LossInput(std::vector<std::vector<std::int64_t>> const& rows);
    LossInput(std::vector<std::vector<std::int32_t>> const& rows);

    [[nodiscard]] TensorView view() const noexcept;
    /// Whether this object owns the numbers.
    [[nodiscard]] bool owned() const noexcept { return value_.index() != 1; }

    bool operator==(LossInput const& other) const noexcept { return view() == other.view(); }

private:
    friend class LossInputs;

    // A list whose elements take the type that belongs to a name.
    struct Plain {
        std::variant<std::vector<float>, std::vector<std::int64_t>, std::vector<double>> data{};
        std::vector<std::int64_t> shape{};
    };
    void settle(std::string_view name);

    std::variant<TensorData, TensorView, Plain> value_;
};

/// The named tensors that a loss reads besides the model's input.
///
///     LossInputs inputs{{"target_tokens", targets}, {"weights", {0, 1, 1}}};
///     inputs.set("advantages", std::span<float const>{advantages});
class LossInputs {
public:
    using Map = std::map<std::string, LossInput, std::less<>>;

    struct Entry {
        std::string name;
        LossInput input;
    };

    LossInputs() = default;
    /// As `set` for each; if a name occurs twice, the last value is kept.
    LossInputs(std::initializer_list<Entry> entries);

    /// Adds or replaces an input. Throws `ValidationError` if a plain list does not fit the type
    /// that the name requires, such as 0.5 as a token.
    void set(std::string name, LossInput input);
    bool erase(std::string_view name);
    [[nodiscard]] bool contains(std::string_view name) const { return inputs_.contains(name); }
    /// The values of an input, or null. Valid until the input is replaced.
    [[nodiscard]] std::optional<TensorView> find(std::string_view name) const;
    /// As `find`; throws `ValidationError` if there is no such input.
    [[nodiscard]] TensorView at(std::string_view name) const;

    /// By name, in the order of the names.
    [[nodiscard]] Map::const_iterator begin() const noexcept { return inputs_.begin(); }
    [[nodiscard]] Map::const_iterator end() const noexcept { return inputs_.end(); }
    [[nodiscard]] std::size_t size() const noexcept { return inputs_.size(); }
    [[nodiscard]] bool empty() const noexcept { return inputs_.empty(); }

    /// Copies viewed numbers, so that their owner may go away.
    void own();

    bool operator==(LossInputs const&) const = default;

private:
    Map inputs_{};
};

/// The element type that the service wants for a plain list of that name, if it knows the name:
/// int64 for `target_tokens`; float32 for `weights`, `advantages`, `logprobs`,
/// `clip_low_threshold`, `clip_high_threshold` and `sequence_ratio_mask`.
[[nodiscard]] std::optional<DType> loss_input_dtype(std::string_view name) noexcept;

/// Which sampled sequence some tokens of a datum come from.
struct ProvenanceSpan {
    enum class Kind : std::uint8_t {
        prompt,   ///< from the prompt of that sequence's request
        sampled,  ///< from what was sampled
    };
    Kind kind{Kind::prompt};
    /// `SampledSequence::sequence_id`.
    std::string sequence_id{};
    std::int64_t offset{0};
    std::int64_t length{0};

    bool operator==(ProvenanceSpan const&) const = default;
};

/// One training example: the model's input, and the inputs of the loss. The caller shifts inputs
/// and targets: `target_tokens[i]` is the token that should follow position i.
struct Datum {
    ModelInput model_input{};
    LossInputs loss_fn_inputs{};
    /// Where the tokens of `model_input` and of `target_tokens` come from. Both or neither.
    std::vector<ProvenanceSpan> model_input_spans{};
    std::vector<ProvenanceSpan> loss_fn_input_spans{};

    /// A copy with these spans. Throws `ValidationError` unless the lengths of `input` add up to
    /// the length of the model input and, for one-dimensional targets, those of `targets` to the
    /// length of `target_tokens`.
    [[nodiscard]] Datum with_provenance(std::vector<ProvenanceSpan> input,
                                        std::vector<ProvenanceSpan> targets) const;

    bool operator==(Datum const&) const = default;
};

}  // namespace tinkxx
