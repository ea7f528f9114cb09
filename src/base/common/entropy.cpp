#include "base/common/entropy.hpp"

#include <random>

namespace tinkxx::base {

std::uint64_t Entropy::draw(std::string_view stream) {
    auto found = drawn_.find(stream);
    if (found == drawn_.end()) found = drawn_.emplace(stream, 0).first;
    std::uint64_t name = 0xcbf29ce484222325U;  // FNV-1a: the same on every platform
    for (auto const c : stream) name = (name ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    return mix(mix(seed_ ^ mix(name)) + found->second++);
}

std::uint64_t random_seed() {
    std::random_device device;
    return (std::uint64_t{device()} << 32U) | device();
}

}  // namespace tinkxx::base
