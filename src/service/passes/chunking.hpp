#pragma once

#include <tinkxx/types/training.hpp>

#include "wire/training/training.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tinkxx::service {

/// About how many bytes a datum takes in an encoding (R-TRAIN-22, R-TRAIN-23).
[[nodiscard]] std::int64_t estimate_bytes(Datum const& datum, wire::Encoding encoding) noexcept;

/// How much may travel in one request (R-TRAIN-21). A cap below 1 counts as 1.
struct ChunkCaps {
    std::int64_t items{1024};
    std::int64_t bytes{5'000'000};
};

/// A stretch of the data that travels in one request.
struct Chunk {
    std::size_t first{0};
    std::size_t count{0};
    /// The estimates of its data.
    std::int64_t bytes{0};

    bool operator==(Chunk const&) const = default;
};

/// Cuts data into chunks, in order and without a gap. None is empty; what is larger than the cap
/// travels alone (R-TRAIN-20).
[[nodiscard]] std::vector<Chunk> split(std::span<Datum const> data, wire::Encoding encoding,
                                       ChunkCaps caps);
/// As above, for data of known sizes.
[[nodiscard]] std::vector<Chunk> split_sizes(std::span<std::int64_t const> sizes, ChunkCaps caps);

}  // namespace tinkxx::service
