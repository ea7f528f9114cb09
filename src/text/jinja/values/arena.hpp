#pragma once

#include "text/jinja/values/failure.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tinkxx::text::jinja {

/// Memory for what lives as long as one template or one rendering. Only grows; all of it is freed
/// at once, so values in it are plain pointers that nobody counts.
class Arena {
public:
    explicit Arena(std::size_t limit) noexcept : limit_{limit} {}
    Arena(Arena const&) = delete;
    Arena& operator=(Arena const&) = delete;

    /// Throws `Failure` once more than the limit would be used.
    [[nodiscard]] void* allocate(std::size_t size, std::size_t alignment) {
        auto const address = reinterpret_cast<std::uintptr_t>(next_);
        auto const padding = (alignment - address % alignment) % alignment;
        if (size + padding > static_cast<std::size_t>(end_ - next_)) {
            grow(size);
            return take(size);  // a fresh block is aligned for everything
        }
        next_ += padding;
        return take(size);
    }

    template <class T, class... Args>
    [[nodiscard]] T* make(Args&&... args) {
        static_assert(std::is_trivially_destructible_v<T>, "nothing in here is destroyed");
        return new (allocate(sizeof(T), alignof(T))) T{std::forward<Args>(args)...};
    }

    /// Elements with their default values.
    template <class T>
    [[nodiscard]] T* array(std::size_t count) {
        static_assert(std::is_trivially_destructible_v<T>, "nothing in here is destroyed");
        if (count > limit_ / sizeof(T)) refuse();
        auto* const first = static_cast<T*>(allocate(count * sizeof(T), alignof(T)));
        std::uninitialized_default_construct_n(first, count);
        return first;
    }

    [[nodiscard]] char* bytes(std::size_t size) {
        if (size > static_cast<std::size_t>(end_ - next_)) grow(size);
        return take(size);
    }

    [[nodiscard]] std::string_view copy(std::string_view text) {
        auto* const to = bytes(text.size());
        if (!text.empty()) std::memcpy(to, text.data(), text.size());
        return {to, text.size()};
    }

    /// Makes room right behind `end`, if nothing was allocated since: a text that grows at its end
    /// need not be copied for every piece.
    [[nodiscard]] bool extend(char const* end, std::size_t size) noexcept {
        if (end != next_ || next_ == block_ || size > static_cast<std::size_t>(end_ - next_)) {
            return false;
        }
        next_ += size;
        return true;
    }

private:
    char* take(std::size_t size) noexcept { return std::exchange(next_, next_ + size); }

    [[noreturn]] void refuse() const {
        fail_limit(
            "more than " + std::to_string(limit_) +
            " bytes of memory are needed; raise max_memory_bytes if the input is that large");
    }

    void grow(std::size_t size) {
        auto const block = std::max(size, next_block_);
        if (block > limit_ - used_) {
            if (size > limit_ - used_) refuse();
            add(size);
            return;
        }
        next_block_ = std::min<std::size_t>(next_block_ * 2, std::size_t{1} << 20U);
        add(block);
    }

    void add(std::size_t block) {
        blocks_.push_back(std::make_unique_for_overwrite<char[]>(std::max<std::size_t>(block, 1)));
        block_ = blocks_.back().get();
        next_ = block_;
        end_ = next_ + block;
        used_ += block;
    }

    std::size_t limit_;
    std::size_t used_{0};
    std::size_t next_block_{std::size_t{1} << 14U};
    char* block_{nullptr};
    char* next_{nullptr};
    char* end_{nullptr};
    std::vector<std::unique_ptr<char[]>> blocks_;
};

}  // namespace tinkxx::text::jinja
