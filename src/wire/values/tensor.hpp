#pragma once

#include <tinkxx/types/datum.hpp>
#include <tinkxx/types/tensor_data.hpp>

#include "wire/json/json.hpp"

#include <string>

namespace tinkxx::wire {

[[nodiscard]] std::string_view to_string(DType dtype) noexcept;

/// What is wrong with the form of a tensor: its numbers do not fill its shape, or its indices
/// point outside. Empty: nothing.
[[nodiscard]] std::string tensor_problem(TensorView const& tensor);
[[nodiscard]] std::string tensor_problem(TensorData const& tensor);

/// Protocol §3.2. What is read has no `tensor_problem`.
void write(JsonOut& json, TensorView const& tensor);
void write(JsonOut& json, TensorData const& tensor);
void read(JsonIn const& in, TensorData& out);

}  // namespace tinkxx::wire
