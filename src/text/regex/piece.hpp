#pragma once

#include <cstddef>
#include <vector>

namespace tinkxx::text {

/// A part of a text, in bytes.
struct Piece {
    std::size_t begin{};
    std::size_t end{};

    bool operator==(Piece const&) const = default;
};

}  // namespace tinkxx::text
