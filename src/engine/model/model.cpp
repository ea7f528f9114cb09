#include "engine/model/model.hpp"

#include "engine/common/failure.hpp"
#include "engine/common/random.hpp"
#include "engine/files/safetensors.hpp"
#include "engine/files/safetensors_writer.hpp"
#include "engine/kernels/attention.hpp"
#include "engine/kernels/convert.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <string>
#include <utility>

namespace tinkxx::engine {

namespace {

std::optional<ElementType> element_type(DType dtype) {
    if (dtype == DType::f32) return ElementType::f32;
    if (dtype == DType::f16) return ElementType::f16;
    if (dtype == DType::bf16) return ElementType::bf16;
    return std::nullopt;
}

DType dtype_of(ElementType type) {
    if (type == ElementType::f16) return DType::f16;
    return type == ElementType::bf16 ? DType::bf16 : DType::f32;
}

std::string shape_text(std::vector<std::uint64_t> const& shape) {
    std::string text = "[";
    for (auto const dimension : shape) {
        if (text.size() > 1) text += ", ";
        text += std::to_string(dimension);
    }
    return text + "]";
}

/// The tensor for a slot, once its shape and type are right.
Result<TensorView const*> tensor_for(WeightSlot const& slot, TensorMap const& tensors) {
    auto const found = tensors.find(slot.name);
    if (found == tensors.end()) {
        return invalid("the model has no tensor " + slot.name, slot.name);
    }
    auto const& tensor = found->second;
    std::vector<std::uint64_t> const wanted =
        slot.vector ? std::vector<std::uint64_t>{slot.cols}
                    : std::vector<std::uint64_t>{slot.rows, slot.cols};
    if (tensor.shape != wanted) {
        return invalid("tensor " + slot.name + " has shape " + shape_text(tensor.shape) +
                           "; config.json asks for " + shape_text(wanted),
                       slot.name);
    }
    if (!element_type(tensor.dtype)) {
        return invalid("tensor " + slot.name + " has dtype " +
                           std::string(to_string(tensor.dtype)) + "; F32, F16 or BF16 is needed",
                       slot.name);
    }
    return &tensor;
}

Result<void> load_slot(WeightSlot const& slot, TensorView const& tensor, Threads* threads,
                       PanelArena& arena) {
    auto const type = *element_type(tensor.dtype);
    if (auto const finite = check_finite(tensor, slot.name); !finite) return finite.error();
    if (slot.vector) {
        *slot.matrix = PackedMatrix(1, slot.cols);
        widen(slot.matrix->values().data(), type, tensor.bytes.data(), slot.cols);
    } else {
        *slot.matrix = PackedMatrix(
            {.type = type, .data = tensor.bytes.data(), .rows = slot.rows, .cols = slot.cols},
            threads, &arena);
    }
    return {};
}

struct Opened {
    ModelConfig config{};
    TensorFolder files{};
};

/// Everything is there, as `Model::load` wants it.
Result<Opened> open_model(std::filesystem::path const& folder, Access access) {
    auto config = read_model_config(folder);
    if (!config) return config.error();
    if (static_cast<std::size_t>(config->head_dim) > max_head_dim) {
        return invalid(
            "config.json: head_dim beyond " + std::to_string(max_head_dim) + " is not supported",
            "head_dim");
    }
    auto files = TensorFolder::open(folder, access);
    if (!files) return files.error();
    Weights none;
    for (auto const& slot : weight_slots(*config, none)) {
        if (auto const tensor = tensor_for(slot, files->tensors()); !tensor) {
            return invalid(folder.string() + ": " + tensor.error().what(), slot.name);
        }
    }
    return Opened{*std::move(config), *std::move(files)};
}

/// A normal number from two uniform ones; its bits need not be the same on another machine.
float normal(std::uint64_t seed, std::uint64_t tensor, std::uint64_t index) {
    auto const word = philox(seed, tensor, index);
    auto const radius = std::sqrt(-2.0 * std::log((word[0] + 0.5) * 0x1p-32));
    return static_cast<float>(radius * std::cos(2.0 * std::numbers::pi * word[1] * 0x1p-32));
}

}  // namespace

Model::Model(ModelConfig config, Weights weights)
    : config_{std::move(config)}, weights_{std::move(weights)} {}

Result<ModelConfig> check_model(std::filesystem::path const& folder) {
    auto opened = open_model(folder, Access::map);
    if (!opened) return opened.error();
    return std::move(opened->config);
}

Result<std::shared_ptr<Model const>> Model::load(std::filesystem::path const& folder,
                                                 Threads* threads, Access access) {
    auto opened = open_model(folder, access);
    if (!opened) return opened.error();
    auto const& tensors = opened->files.tensors();
    Weights weights;
    auto const slots = weight_slots(opened->config, weights);
    std::size_t bytes = 0;
    for (auto const& slot : slots) bytes += tensors.at(slot.name).bytes.size();
    PanelArena arena{bytes, slots.size()};
    for (auto const& slot : slots) {
        if (auto const loaded = load_slot(slot, tensors.at(slot.name), threads, arena); !loaded) {
            return invalid(folder.string() + ": " + loaded.error().what(), slot.name);
        }
    }
    return std::make_shared<Model const>(std::move(opened->config), std::move(weights));
}

std::shared_ptr<Model const> Model::random(ModelConfig const& config, ElementType type,
                                           std::uint64_t seed) {
    Weights weights;
    std::uint64_t number = 0;
    auto const slots = weight_slots(config, weights);
    auto arena = arena_for(slots, element_bytes(type));
    for (auto const& slot : slots) {
        ++number;
        auto const count = slot.rows * slot.cols;
        bool const norm = slot.vector && slot.name.ends_with("norm.weight");
        std::vector<float> values(count, 1.0F);
        for (std::size_t i = 0; i < count && !norm; ++i) {
            values[i] = 0.02F * normal(seed, number, i);
        }
        if (slot.vector) {
            *slot.matrix = PackedMatrix(1, slot.cols);
            std::ranges::copy(values, slot.matrix->values().begin());
            continue;
        }
        std::vector<std::byte> stored(count * element_bytes(type));
        narrow(stored.data(), type, values.data(), count);
        *slot.matrix = PackedMatrix(
            {.type = type, .data = stored.data(), .rows = slot.rows, .cols = slot.cols}, nullptr,
            &arena);
    }
    return std::make_shared<Model const>(config, std::move(weights));
}

std::size_t Model::bytes() const noexcept {
    std::size_t total = 0;
    for (auto const* matrix : all_matrices(const_cast<Weights&>(weights_))) {
        total += matrix->bytes();
    }
    return total;
}

std::shared_ptr<RopeTables const> Model::rope_tables(std::size_t positions) const {
    std::lock_guard const lock{rope_mutex_};
    if (rope_ != nullptr && rope_->positions >= positions) return rope_;
    auto tables = std::make_shared<RopeTables>();
    auto const frequencies = rope_frequencies(config_);
    tables->positions = std::max<std::size_t>(positions + positions / 2, 256);
    tables->width = frequencies.size();
    for (std::size_t position = 0; position < tables->positions; ++position) {
        for (auto const frequency : frequencies) {
            auto const angle = static_cast<double>(position) * frequency;
            tables->cosines.push_back(static_cast<float>(std::cos(angle)));
            tables->sines.push_back(static_cast<float>(std::sin(angle)));
        }
    }
    rope_ = tables;
    return rope_;
}

void stream_matrix(PackedMatrix const& matrix, ElementType type, ByteSink const& sink) {
    std::vector<std::byte> rows;
    std::vector<float> wide;
    std::vector<std::byte> rounded;
    for (std::size_t p = 0; p < matrix.panels(); ++p) {
        auto const count = matrix.width(p) * matrix.inputs();
        rows.resize(count * element_bytes(matrix.type()));
        matrix.unpack_panel(p, rows.data());
        if (matrix.type() == type) {
            sink(rows);
            continue;
        }
        wide.resize(count);
        widen(wide.data(), matrix.type(), rows.data(), count);
        rounded.resize(count * element_bytes(type));
        narrow(rounded.data(), type, wide.data(), count);
        sink(rounded);
    }
}

Result<void> save_model(std::filesystem::path const& folder, ModelConfig const& config,
                        Weights const& weights, ElementType type) {
    return replace_folder(folder, [&](std::filesystem::path const& to) -> Result<void> {
        static constexpr std::array<std::string_view, 3> names{"float32", "bfloat16", "float16"};
        auto written = write_file(
            to / "config.json", write_model_config(config, names[static_cast<std::size_t>(type)]));
        if (!written) return written;
        std::vector<TensorOut> tensors;
        for (auto const& slot : weight_slots(config, const_cast<Weights&>(weights))) {
            auto shape = slot.vector ? std::vector<std::uint64_t>{slot.cols}
                                     : std::vector<std::uint64_t>{slot.rows, slot.cols};
            tensors.push_back({.name = slot.name,
                               .dtype = dtype_of(type),
                               .shape = std::move(shape),
                               .stream = [matrix = slot.matrix, type](ByteSink const& sink) {
                                   stream_matrix(*matrix, type, sink);
                               }});
        }
        return write_safetensors(to / "model.safetensors", tensors, {{"format", "pt"}});
    });
}

Weights widen_weights(ModelConfig const& config, Weights const& weights) {
    Weights result;
    auto const to = weight_slots(config, result);
    auto arena = arena_for(to, sizeof(float));
    auto const from = weight_slots(config, const_cast<Weights&>(weights));
    for (std::size_t i = 0; i < to.size(); ++i) {
        // Panels of both types have the same order.
        auto const& matrix = *from[i].matrix;
        *to[i].matrix = PackedMatrix(matrix.outputs(), matrix.inputs(), &arena);
        auto const values = to[i].matrix->values();
        widen(values.data(), matrix.type(), matrix.panel(0), values.size());
    }
    return result;
}

}  // namespace tinkxx::engine
