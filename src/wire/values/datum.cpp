#include <tinkxx/error.hpp>
#include <tinkxx/types/datum.hpp>

#include "base/common/invalid.hpp"
#include "wire/values/datum.hpp"
#include "wire/values/model_input.hpp"
#include "wire/values/tensor.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

namespace tinkxx {

namespace {

std::string shown(double number) {
    std::array<char, 32> text;
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

// The rows one after the other, and how many there are of which length.
template <class T, class Stored>
std::pair<std::vector<Stored>, std::vector<std::int64_t>> flat(
    std::vector<std::vector<T>> const& rows) {
    auto const columns = rows.empty() ? 0 : rows.front().size();
    std::vector<Stored> out;
    out.reserve(rows.size() * columns);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].size() != columns) {
            base::refuse("loss input", "rows/" + std::to_string(i), std::to_string(rows[i].size()),
                         "row " + std::to_string(i) + " of a list has " +
                             std::to_string(rows[i].size()) + " numbers and row 0 has " +
                             std::to_string(columns) + "; all rows must be equally long");
        }
        out.insert(out.end(), rows[i].begin(), rows[i].end());
    }
    return {std::move(out),
            {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns)}};
}

std::vector<std::int64_t> length_of(std::size_t size) { return {static_cast<std::int64_t>(size)}; }

template <class T>
std::vector<std::int64_t> to_int64(std::vector<T> const& list, std::string_view name) {
    if constexpr (std::is_same_v<T, std::int64_t>) {
        return list;
    } else {
        std::vector<std::int64_t> out;
        out.reserve(list.size());
        for (std::size_t i = 0; i < list.size(); ++i) {
            auto const number = static_cast<double>(list[i]);
            // 2^63 is a double, the largest int64 is not.
            if (std::trunc(number) != number || number < -0x1p63 || number >= 0x1p63) {
                base::refuse("loss input", std::string{name}, shown(number),
                             std::string{name} + "[" + std::to_string(i) + "] is " + shown(number) +
                                 "; " + std::string{name} + " are integers (int64)");
            }
            out.push_back(static_cast<std::int64_t>(number));
        }
        return out;
    }
}

template <class T>
std::vector<float> to_float(std::vector<T> list) {
    if constexpr (std::is_same_v<T, float>) {
        return list;
    } else {
        std::vector<float> out;
        out.reserve(list.size());
        for (auto const number : list) out.push_back(static_cast<float>(number));
        return out;
    }
}

}  // namespace

std::size_t TensorView::size() const noexcept {
    return data.index() == 0 ? std::get_if<0>(&data)->size() : std::get_if<1>(&data)->size();
}

TensorView view(TensorData const& tensor) noexcept {
    TensorView out;
    if (auto const* floats = std::get_if<0>(&tensor.data)) {
        out.data = std::span<float const>{*floats};
    } else if (auto const* integers = std::get_if<1>(&tensor.data)) {
        out.data = std::span<std::int64_t const>{*integers};
    }
    if (tensor.shape) out.shape.emplace(*tensor.shape);
    if (tensor.sparse_crow_indices) out.sparse_crow_indices.emplace(*tensor.sparse_crow_indices);
    if (tensor.sparse_col_indices) out.sparse_col_indices.emplace(*tensor.sparse_col_indices);
    return out;
}

TensorData to_tensor_data(TensorView const& view) {
    TensorData out;
    auto const copy = [](auto const& span) {
        return std::vector<
            std::remove_const_t<typename std::decay_t<decltype(span)>::element_type>>(span.begin(),
                                                                                      span.end());
    };
    std::visit([&](auto const& numbers) { out.data = copy(numbers); }, view.data);
    if (view.shape) out.shape = copy(*view.shape);
    if (view.sparse_crow_indices) out.sparse_crow_indices = copy(*view.sparse_crow_indices);
    if (view.sparse_col_indices) out.sparse_col_indices = copy(*view.sparse_col_indices);
    return out;
}

bool operator==(TensorView const& a, TensorView const& b) noexcept {
    auto const same = [](auto const& x, auto const& y) {
        return x.has_value() == y.has_value() && (!x || std::ranges::equal(*x, *y));
    };
    if (a.data.index() != b.data.index()) return false;
    auto const equal = a.data.index() == 0
                           ? std::ranges::equal(*std::get_if<0>(&a.data), *std::get_if<0>(&b.data))
                           : std::ranges::equal(*std::get_if<1>(&a.data), *std::get_if<1>(&b.data));
    return equal && same(a.shape, b.shape) && same(a.sparse_crow_indices, b.sparse_crow_indices) &&
           same(a.sparse_col_indices, b.sparse_col_indices);
}

TensorData to_csr(TensorData const& dense, double pad) {
    if (dense.sparse())
        base::refuse("to_csr", "sparse_crow_indices", {}, "the tensor is sparse already");
    if (auto const problem = wire::tensor_problem(dense); !problem.empty()) {
        base::refuse("to_csr", "shape", {}, "the tensor has " + problem);
    }
    if (!dense.shape || dense.shape->size() != 2) {
        auto const rank = dense.shape ? dense.shape->size() : 1;
        base::refuse("to_csr", "shape", std::to_string(rank),
                     "the tensor has " + std::to_string(rank) +
                         " dimensions; only matrices, which have two, have a CSR form");
    }
    auto const rows = static_cast<std::size_t>((*dense.shape)[0]);
    auto const columns = static_cast<std::size_t>((*dense.shape)[1]);
    TensorData out;
    out.shape = dense.shape;
    auto& crow = out.sparse_crow_indices.emplace();
    auto& col = out.sparse_col_indices.emplace();
    crow.reserve(rows + 1);
    crow.push_back(0);
    std::visit(
        [&](auto const& numbers) {
            using Number = typename std::decay_t<decltype(numbers)>::value_type;
            std::vector<Number> stored;
            for (std::size_t row = 0; row < rows; ++row) {
                for (std::size_t column = 0; column < columns; ++column) {
                    auto const number = numbers[row * columns + column];
                    if (number == static_cast<Number>(pad)) continue;
                    stored.push_back(number);
                    col.push_back(static_cast<std::int64_t>(column));
                }
                crow.push_back(static_cast<std::int64_t>(stored.size()));
            }
            out.data = std::move(stored);
        },
        dense.data);
    return out;
}

TensorData to_dense(TensorData const& csr, double pad) {
    if (!csr.sparse())
        base::refuse("to_dense", "sparse_crow_indices", {}, "the tensor is dense already");
    if (auto const problem = wire::tensor_problem(csr); !problem.empty()) {
        base::refuse("to_dense", "sparse_crow_indices", {}, "the tensor has " + problem);
    }
    auto const rows = static_cast<std::size_t>((*csr.shape)[0]);
    auto const columns = static_cast<std::size_t>((*csr.shape)[1]);
    if (columns != 0 && rows > std::vector<std::int64_t>{}.max_size() / columns) {
        base::refuse("to_dense", "shape", {},
                     "a matrix of " + std::to_string(rows) + " by " + std::to_string(columns) +
                         " is too large");
    }
    TensorData out;
    out.shape = csr.shape;
    std::visit(
        [&](auto const& stored) {
            using Number = typename std::decay_t<decltype(stored)>::value_type;
            std::vector<Number> numbers(rows * columns, static_cast<Number>(pad));
            for (std::size_t row = 0; row < rows; ++row) {
                auto const end = static_cast<std::size_t>((*csr.sparse_crow_indices)[row + 1]);
                for (auto i = static_cast<std::size_t>((*csr.sparse_crow_indices)[row]); i < end;
                     ++i) {
                    numbers[row * columns +
                            static_cast<std::size_t>((*csr.sparse_col_indices)[i])] = stored[i];
                }
            }
            out.data = std::move(numbers);
        },
        csr.data);
    return out;
}

TensorData csr_if_smaller(TensorData tensor, double pad) {
    if (tensor.sparse() || !tensor.shape || tensor.shape->size() != 2 ||
        !wire::tensor_problem(tensor).empty()) {
        return tensor;
    }
    auto const cells = static_cast<std::uint64_t>(view(tensor).size());
    auto const stored = std::visit(
        [&](auto const& numbers) {
            using Number = typename std::decay_t<decltype(numbers)>::value_type;
            return numbers.size() -
                   static_cast<std::size_t>(std::ranges::count(numbers, static_cast<Number>(pad)));
        },
        tensor.data);
    auto const rows = static_cast<std::uint64_t>((*tensor.shape)[0]);
    if (rows + 1 + 2 * stored >= cells) return tensor;
    return to_csr(tensor, pad);
}

LossInput::LossInput(std::vector<float> list) {
    auto shape = length_of(list.size());
    value_ = Plain{std::move(list), std::move(shape)};
}
LossInput::LossInput(std::vector<double> list) {
    auto shape = length_of(list.size());
    value_ = Plain{std::move(list), std::move(shape)};
}
LossInput::LossInput(std::vector<std::int64_t> list) {
    auto shape = length_of(list.size());
    value_ = Plain{std::move(list), std::move(shape)};
}
LossInput::LossInput(std::vector<std::int32_t> const& list)
    : LossInput{std::vector<std::int64_t>(list.begin(), list.end())} {}
LossInput::LossInput(std::initializer_list<double> list) : LossInput{std::vector<double>(list)} {}
LossInput::LossInput(std::vector<std::vector<float>> const& rows) {
    auto [numbers, shape] = flat<float, float>(rows);
    value_ = Plain{std::move(numbers), std::move(shape)};
}
LossInput::LossInput(std::vector<std::vector<double>> const& rows) {
    auto [numbers, shape] = flat<double, double>(rows);
    value_ = Plain{std::move(numbers), std::move(shape)};
}
LossInput::LossInput(std::vector<std::vector<std::int64_t>> const& rows) {
    auto [numbers, shape] = flat<std::int64_t, std::int64_t>(rows);
    value_ = Plain{std::move(numbers), std::move(shape)};
}
LossInput::LossInput(std::vector<std::vector<std::int32_t>> const& rows) {
    auto [numbers, shape] = flat<std::int32_t, std::int64_t>(rows);
    value_ = Plain{std::move(numbers), std::move(shape)};
}

TensorView LossInput::view() const noexcept {
    if (auto const* tensor = std::get_if<TensorData>(&value_)) return tinkxx::view(*tensor);
    if (auto const* elsewhere = std::get_if<TensorView>(&value_)) return *elsewhere;
    TensorView out;
    auto const& plain = *std::get_if<Plain>(&value_);
    if (auto const* floats = std::get_if<0>(&plain.data)) {
        out.data = std::span<float const>{*floats};
    } else if (auto const* integers = std::get_if<1>(&plain.data)) {
        out.data = std::span<std::int64_t const>{*integers};
    }
    out.shape.emplace(plain.shape);
    return out;
}

void LossInput::settle(std::string_view name) {
    auto* const plain = std::get_if<Plain>(&value_);
    if (plain == nullptr) return;
    auto const natural = plain->data.index() == 1 ? DType::int64 : DType::float32;
    TensorData tensor;
    std::visit(
        [&](auto& list) {
            if (loss_input_dtype(name).value_or(natural) == DType::int64) {
                tensor.data = to_int64(std::move(list), name);
            } else {
                tensor.data = to_float(std::move(list));
            }
        },
        plain->data);
    tensor.shape = std::move(plain->shape);
    value_ = std::move(tensor);
}

LossInputs::LossInputs(std::initializer_list<Entry> entries) {
    for (auto const& entry : entries) set(entry.name, entry.input);
}

void LossInputs::set(std::string name, LossInput input) {
    input.settle(name);
    inputs_.insert_or_assign(std::move(name), std::move(input));
}

bool LossInputs::erase(std::string_view name) {
    auto const found = inputs_.find(name);
    if (found == inputs_.end()) return false;
    inputs_.erase(found);
    return true;
}

std::optional<TensorView> LossInputs::find(std::string_view name) const {
    auto const found = inputs_.find(name);
    if (found == inputs_.end()) return std::nullopt;
    return found->second.view();
}

TensorView LossInputs::at(std::string_view name) const {
    if (auto found = find(name)) return *found;
    std::string have;
    for (auto const& [other, input] : inputs_) {
        if (!have.empty()) have += ", ";
        have += other;
    }
    base::refuse("loss inputs", std::string{name}, {},
                 "there is no input " + std::string{name} +
                     "; there is: " + (have.empty() ? "nothing" : have));
}

void LossInputs::own() {
    for (auto& [name, input] : inputs_) {
        if (!input.owned()) input = LossInput{to_tensor_data(input.view())};
    }
}

std::optional<DType> loss_input_dtype(std::string_view name) noexcept {
    if (name == "target_tokens") return DType::int64;
    constexpr std::array<std::string_view, 6> floats{"weights",
                                                     "advantages",
                                                     "logprobs",
                                                     "clip_low_threshold",
                                                     "clip_high_threshold",
                                                     "sequence_ratio_mask"};
    if (std::ranges::find(floats, name) != floats.end()) return DType::float32;
    return std::nullopt;
}

Datum Datum::with_provenance(std::vector<ProvenanceSpan> input,
                             std::vector<ProvenanceSpan> targets) const {
    auto out = *this;
    out.model_input_spans = std::move(input);
    out.loss_fn_input_spans = std::move(targets);
    if (auto const problem = wire::spans_problem(out)) {
        base::refuse("with_provenance", problem->field, problem->value, problem->why);
    }
    return out;
}

}  // namespace tinkxx

namespace tinkxx::wire {

namespace {

std::optional<SpansProblem> list_problem(std::vector<ProvenanceSpan> const& spans,
                                         std::string_view list, std::optional<std::int64_t> wanted,
                                         std::string_view tiled) {
    std::int64_t total = 0;
    for (std::size_t i = 0; i < spans.size(); ++i) {
        auto const& span = spans[i];
        auto const place = std::string{list} + "/" + std::to_string(i);
        if (span.sequence_id.empty()) {
            return SpansProblem{place + "/sequence_id", "", place + " names no sequence"};
        }
        for (auto const& [name, number] :
             {std::pair{"offset", span.offset}, std::pair{"length", span.length}}) {
            if (number < 0) {
                return SpansProblem{
                    place + "/" + name, std::to_string(number),
                    place + " has " + name + " " + std::to_string(number) + ", which is negative"};
            }
        }
        if (span.length > std::numeric_limits<std::int64_t>::max() - total) {
            return SpansProblem{place + "/length", std::to_string(span.length),
                                std::string{list} + " are longer than can be counted"};
        }
        total += span.length;
    }
    if (!wanted || total == *wanted) return std::nullopt;
    return SpansProblem{std::string{list}, std::to_string(total),
                        std::string{list} + " have " + std::to_string(total) + " tokens and " +
                            std::string{tiled} + " has " + std::to_string(*wanted) +
                            "; they must be equally long"};
}

}  // namespace

std::optional<SpansProblem> spans_problem(Datum const& datum) {
    auto const& input = datum.model_input_spans;
    auto const& targets = datum.loss_fn_input_spans;
    if (input.empty() && targets.empty()) return std::nullopt;
    if (input.empty() != targets.empty()) {
        std::string const missing = input.empty() ? "model_input_spans" : "loss_fn_input_spans";
        return SpansProblem{missing, "", missing + " is empty; give both lists of spans or none"};
    }
    auto const length = token_count(datum.model_input);
    if (!length) {
        return SpansProblem{
            "model_input", "",
            std::string{"the length of model_input is not known ("} + length.error().what() + ")"};
    }
    if (auto problem = list_problem(input, "model_input_spans", *length, "model_input")) {
        return problem;
    }
    auto const target_tokens = datum.loss_fn_inputs.find("target_tokens");
    if (!target_tokens) {
        return SpansProblem{"target_tokens", "",
                            "there are loss_fn_input_spans but no target_tokens"};
    }
    // Those over a matrix are for the server to add up.
    auto const flat = !target_tokens->shape || target_tokens->shape->size() == 1;
    if (!flat) return list_problem(targets, "loss_fn_input_spans", std::nullopt, "target_tokens");
    return list_problem(targets, "loss_fn_input_spans",
                        static_cast<std::int64_t>(target_tokens->size()), "target_tokens");
}

}  // namespace tinkxx::wire
