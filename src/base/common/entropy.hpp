#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tinkxx::base {

/// One step of SplitMix64: a good mix of all bits of `x`.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
}

/// Numbers by seed, stream name and ordinal within the stream, so that draws from one stream
/// leave the others as they are. One thread.
class Entropy {
public:
    explicit Entropy(std::uint64_t seed) noexcept : seed_{seed} {}

    [[nodiscard]] std::uint64_t draw(std::string_view stream);

private:
    std::uint64_t seed_;
    std::map<std::string, std::uint64_t, std::less<>> drawn_;
};

/// A seed that nobody can foretell, from the operating system.
[[nodiscard]] std::uint64_t random_seed();

}  // namespace tinkxx::base
