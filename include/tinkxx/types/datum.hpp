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

/// A tensor whose numbers somebody else keeps, in the layout of `TensorData`. They are read, and
/// copied once, when the call that takes the tensor encodes its request: before it returns.
struct TensorView {
    std::variant<std::span<float const>, std::span<std::int64_t const>> data{};
    std::optional<std::span<std::int64_t const>> shape{};
    std::optional<std::span<std::int64_t const>> sparse_crow_indices{};
    std::optional<std::span<std::int64_t const>> sparse_col_indices{};

    [[nodiscard]] DType dtype() const noexcept {
        return data.index() == 0 ? DType::float32 : DType::int64;
    }
    [[nodiscard]] bool sparse() const noexcept { return sparse_crow_indices.has_value(); }
    /// How many numbers there are; of a CSR matrix, the stored ones.
    [[nodiscard]] std::size_t size() const noexcept;
};

[[nodiscard]] TensorView view(TensorData const& tensor) noexcept;
/// A copy of what a view shows.
[[nodiscard]] TensorData to_tensor_data(TensorView const& view);
/// The same numbers in the same layout.
[[nodiscard]] bool operator==(TensorView const& a, TensorView const& b) noexcept;

/// A dense matrix in CSR form: its cells that differ from `pad`. Throws `ValidationError` if the
/// tensor is sparse already or has no two dimensions.
[[nodiscard]] TensorData to_csr(TensorData const& dense, double pad = 0);
/// The dense form of a CSR matrix; cells that are not stored become `pad`.
[[nodiscard]] TensorData to_dense(TensorData const& csr, double pad = 0);
/// The CSR form of a matrix if that is smaller: if (rows + 1) + 2 * stored < rows * columns. Else,
/// and if the tensor is no dense matrix, the tensor as it is. Some servers take no CSR.
[[nodiscard]] TensorData csr_if_smaller(TensorData tensor, double pad = 0);

/// The values of one loss input.
///
/// A `TensorData` or a `TensorView` is sent as it is. A plain list, one-dimensional or of rows
/// that are equally long, takes the element type that the service wants for the input's name, and
/// that of its own elements if the name is not one of those.
class LossInput {
public:
    LossInput(TensorData tensor) : value_{std::move(tensor)} {}
    /// Keeps no copy: what the view shows must stay until the call that sends it has returned.
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
    /// Whether the numbers are kept here, and not elsewhere.
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

/// The named tensors that a loss reads beside the model's input.
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
    /// As `set` for each; a name that comes twice keeps its last values.
    LossInputs(std::initializer_list<Entry> entries);

    /// Puts or replaces an input. Throws `ValidationError` if a plain list does not fit the type
    /// that belongs to the name, such as 0.5 as a token.
    void set(std::string name, LossInput input);
    bool erase(std::string_view name);
    [[nodiscard]] bool contains(std::string_view name) const { return inputs_.contains(name); }
    /// The values under a name, if there are any. Valid until the input is replaced.
    [[nodiscard]] std::optional<TensorView> find(std::string_view name) const;
    /// As `find`; throws `ValidationError` if there is no such input.
    [[nodiscard]] TensorView at(std::string_view name) const;

    /// By name, in the order of the names.
    [[nodiscard]] Map::const_iterator begin() const noexcept { return inputs_.begin(); }
    [[nodiscard]] Map::const_iterator end() const noexcept { return inputs_.end(); }
    [[nodiscard]] std::size_t size() const noexcept { return inputs_.size(); }
    [[nodiscard]] bool empty() const noexcept { return inputs_.empty(); }

    /// Copies what is kept elsewhere, so that nothing else need stay.
    void own();

    bool operator==(LossInputs const&) const = default;

private:
    Map inputs_{};
};

/// The element type that the service wants for a plain list of that name, if it knows the name:
/// int64 for `target_tokens`; float32 for `weights`, `advantages`, `logprobs`,
/// `clip_low_threshold`, `clip_high_threshold` and `sequence_ratio_mask`.
[[nodiscard]] std::optional<DType> loss_input_dtype(std::string_view name) noexcept;

/// From which sampled sequence tokens of a datum come.
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

/// One training example: what the model reads, and what the loss needs to judge it. Inputs and
/// targets are shifted by the caller: `target_tokens[i]` is what should follow position i.
struct Datum {
    ModelInput model_input{};
    LossInputs loss_fn_inputs{};
    /// Where the tokens of `model_input` and of `target_tokens` come from. Both or neither.
    std::vector<ProvenanceSpan> model_input_spans{};
    std::vector<ProvenanceSpan> loss_fn_input_spans{};

    /// A copy with these spans. Throws `ValidationError` unless the lengths of `input` add up to
    /// that of the model input and, if they are one-dimensional, those of `targets` to that of
    /// `target_tokens`.
    [[nodiscard]] Datum with_provenance(std::vector<ProvenanceSpan> input,
                                        std::vector<ProvenanceSpan> targets) const;

    bool operator==(Datum const&) const = default;
};

}  // namespace tinkxx
