#pragma once

#include "text/jinja/values/value.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace tinkxx::text::jinja {

struct Keyword {
    Value name{};
    Value value{};
};

/// What a call gives, as evaluated.
struct Arguments {
    Value const* positional{nullptr};
    std::uint32_t count{0};
    Keyword const* keywords{nullptr};
    std::uint32_t keyword_count{0};

    [[nodiscard]] bool empty() const noexcept { return count == 0 && keyword_count == 0; }
    [[nodiscard]] Value const* keyword(std::string_view name) const noexcept {
        for (std::uint32_t i = 0; i < keyword_count; ++i) {
            if (keywords[i].name.view() == name) return &keywords[i].value;
        }
        return nullptr;
    }
};

inline constexpr std::size_t most_parameters = 7;

/// The parameters of a filter, a method or a function.
struct Signature {
    std::string_view name{};
    /// So many of the parameters have no default.
    std::uint8_t required{0};
    std::array<std::string_view, most_parameters> parameters{};
};

/// One value for each parameter; missing where none is given.
using Bound = std::array<Value, most_parameters>;

/// Puts each argument where its parameter is. Throws as Python does if that is impossible.
[[nodiscard]] Bound bind(Signature const& signature, Arguments const& arguments);
/// Throws unless there are as many positional arguments, and no others.
void expect_positional(std::string_view name, Arguments const& arguments, std::uint32_t least,
                       std::uint32_t most);

}  // namespace tinkxx::text::jinja
