#include "engine/kernels/packed_matrix.hpp"

#include "engine/common/threads.hpp"
#include "engine/kernels/convert.hpp"
#include "engine/kernels/types.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace tinkxx::engine {

namespace {

// Large matrices are read once per token, at the speed of memory: with pages of 4 KB a good part of
// that time would go into finding the pages.
constexpr std::size_t huge_page = 2U << 20;

constexpr std::align_val_t small_alignment{64};

#if defined(__linux__)

std::size_t whole_pages(std::size_t bytes) {
    static auto const page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page;
}

/// From the system and not from the heap, whose other users would get large pages too.
std::byte* allocate_pages(std::size_t bytes) {
    auto const size = whole_pages(bytes);
    auto* const mapped =
        mmap(nullptr, size + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc{};
    auto* const from = static_cast<std::byte*>(mapped);
    auto const head = -reinterpret_cast<std::uintptr_t>(from) % huge_page;
    if (head != 0) munmap(from, head);
    munmap(from + head + size, huge_page - head);
    // Only a wish: what remains of the last page, or a refusal, costs speed and nothing else.
    madvise(from + head, size, MADV_HUGEPAGE);
    return from + head;
}

std::byte* allocate(std::size_t bytes) {
    if (bytes >= huge_page) return allocate_pages(bytes);
    return static_cast<std::byte*>(::operator new[](bytes, small_alignment));
}

void release(std::byte* memory, std::size_t bytes) noexcept {
    if (bytes >= huge_page) {
        munmap(memory, whole_pages(bytes));
    } else {
        ::operator delete[](memory, small_alignment);
    }
}

#else

std::byte* allocate(std::size_t bytes) {
    return static_cast<std::byte*>(::operator new[](bytes, small_alignment));
}

void release(std::byte* memory, std::size_t) noexcept {
    ::operator delete[](memory, small_alignment);
}

#endif

constexpr std::size_t line = 64;
constexpr std::size_t whole_lines(std::size_t bytes) { return (bytes + line - 1) / line * line; }

PanelMemory memory_for(std::size_t bytes, PanelArena* arena) {
    if (arena != nullptr) {
        if (auto taken = arena->take(bytes)) return taken;
    }
    return PanelMemory{allocate(bytes), FreePanels{.bytes = bytes}};
}

template <class Body>
void each_panel(Threads* threads, std::size_t panels, Body body) {
    if (threads == nullptr) {
        for (std::size_t p = 0; p != panels; ++p) body(p);
    } else {
        threads->run(panels, [&](std::size_t p, unsigned) { body(p); });
    }
}

/// to[j * to_stride + i] = from[i * from_stride + j] of elements of `Bytes` bytes, which need not
/// be aligned. In squares, so that each cache line is used while it is there.
template <std::size_t Bytes>
void transpose(std::byte* to, std::size_t to_stride, std::byte const* from, std::size_t from_stride,
               std::size_t rows, std::size_t cols) {
    constexpr std::size_t square = 64;
    for (std::size_t j0 = 0; j0 < cols; j0 += square) {
        auto const end = std::min(cols, j0 + square);
        for (std::size_t i = 0; i != rows; ++i) {
            for (std::size_t j = j0; j != end; ++j) {
                std::memcpy(to + (j * to_stride + i) * Bytes, from + (i * from_stride + j) * Bytes,
                            Bytes);
            }
        }
    }
}

}  // namespace

void FreePanels::operator()(std::byte* p) const noexcept {
    if (arena == nullptr) release(p, bytes);
}

PanelArena::PanelArena(std::size_t bytes, std::size_t matrices) {
    auto const size = bytes + matrices * line;
    if (size < huge_page) return;
    memory_ = {allocate(size), [size](std::byte* p) { release(p, size); }};
    next_ = memory_.get();
    left_ = size;
}

PanelMemory PanelArena::take(std::size_t bytes) {
    auto const size = whole_lines(bytes);
    if (size > left_) return {};
    auto* const place = next_;
    next_ += size;
    left_ -= size;
    return PanelMemory{place, FreePanels{.bytes = bytes, .arena = memory_}};
}

PackedMatrix::PackedMatrix(WeightView weights, Threads* threads, PanelArena* arena)
    : type_{weights.type},
      outputs_{weights.rows},
      inputs_{weights.cols},
      data_{memory_for(bytes(), arena)} {
    assign(weights, threads);
}

PackedMatrix::PackedMatrix(std::size_t outputs, std::size_t inputs, PanelArena* arena)
    : outputs_{outputs}, inputs_{inputs}, data_{memory_for(bytes(), arena)} {
    std::ranges::fill(values(), 0.0F);
}

std::span<float> PackedMatrix::values() noexcept {
    if (type_ != ElementType::f32) return {};
    return {reinterpret_cast<float*>(data_.get()), outputs_ * inputs_};
}

std::span<float const> PackedMatrix::values() const noexcept {
    if (type_ != ElementType::f32) return {};
    return {reinterpret_cast<float const*>(data_.get()), outputs_ * inputs_};
}

void PackedMatrix::assign(WeightView weights, Threads* threads) {
    if (weights.rows != outputs_ || weights.cols != inputs_) {
        throw std::invalid_argument{"PackedMatrix::assign: the shapes differ"};
    }
    auto const rounds = weights.type == ElementType::f32 && type_ != ElementType::f32;
    if (!rounds && weights.type != type_) {
        throw std::invalid_argument{"PackedMatrix::assign: the types differ"};
    }
    auto const* const from = static_cast<std::byte const*>(weights.data);
    each_panel(threads, panels(), [&](std::size_t p) {
        auto const rows = width(p);
        auto* const to = data_.get() + p * panel_outputs * inputs_ * element_bytes(type_);
        auto const* const first = from + p * panel_outputs * inputs_ * element_bytes(weights.type);
        if (type_ == ElementType::f32) {
            transpose<4>(to, rows, first, inputs_, rows, inputs_);
        } else if (!rounds) {
            transpose<2>(to, rows, first, inputs_, rows, inputs_);
        } else {
            constexpr std::size_t some = 256;
            alignas(64) float floats[some];
            alignas(64) std::byte halves[some * 2];
            for (std::size_t i = 0; i != rows; ++i) {
                for (std::size_t j = 0; j < inputs_; j += some) {
                    auto const n = std::min(some, inputs_ - j);
                    std::memcpy(floats, first + (i * inputs_ + j) * 4, n * 4);
                    narrow(halves, type_, floats, n);
                    transpose<2>(to + (j * rows + i) * 2, rows, halves, n, 1, n);
                }
            }
        }
    });
}

void PackedMatrix::unpack(void* to, Threads* threads) const {
    each_panel(threads, panels(), [&](std::size_t p) {
        auto const offset = p * panel_outputs * inputs_ * element_bytes(type_);
        unpack_panel(p, static_cast<std::byte*>(to) + offset);
    });
}

void PackedMatrix::unpack_panel(std::size_t p, void* to) const {
    auto* const rows = static_cast<std::byte*>(to);
    auto const* const from = static_cast<std::byte const*>(panel(p));
    if (element_bytes(type_) == 4) {
        transpose<4>(rows, inputs_, from, width(p), inputs_, width(p));
    } else {
        transpose<2>(rows, inputs_, from, width(p), inputs_, width(p));
    }
}

void PackedMatrix::gather_row(std::size_t output, float* to) const noexcept {
    auto const p = output / panel_outputs;
    auto const stride = width(p);
    auto const* const bytes = static_cast<std::byte const*>(panel(p));
    auto const column = output % panel_outputs;
    if (type_ == ElementType::f32) {
        transpose<4>(reinterpret_cast<std::byte*>(to), 1, bytes + column * 4, stride, inputs_, 1);
        return;
    }
    constexpr std::size_t some = 256;
    alignas(64) std::byte halves[some * 2];
    for (std::size_t k = 0; k < inputs_; k += some) {
        auto const n = std::min(some, inputs_ - k);
        transpose<2>(halves, 1, bytes + (k * stride + column) * 2, stride, n, 1);
        widen(to + k, type_, halves, n);
    }
}

}  // namespace tinkxx::engine
