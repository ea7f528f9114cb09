#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

namespace tinkxx::support {

/// One entry of a tar file, header and content, whatever it may be. `bytes`: the size that the
/// header tells; less than 0: that of the content.
inline std::string tar_entry(std::string const& name, std::string const& content, char type = '0',
                             std::string const& link = {}, std::int64_t bytes = -1) {
    std::string block(512, '\0');
    std::memcpy(block.data(), name.data(), std::min<std::size_t>(name.size(), 100));
    // In octal, of so many digits.
    auto const put = [&block](std::size_t at, std::size_t digits, std::uint64_t value) {
        for (auto i = digits; i > 0; --i, value >>= 3U) {
            block[at + i - 1] = static_cast<char>('0' + (value & 7U));
        }
    };
    put(100, 7, 0644);
    put(108, 7, 0);
    put(116, 7, 0);
    put(124, 11, bytes < 0 ? content.size() : static_cast<std::uint64_t>(bytes));
    put(136, 11, 1'700'000'000);
    block[156] = type;
    std::memcpy(block.data() + 157, link.data(), std::min<std::size_t>(link.size(), 100));
    std::memcpy(block.data() + 257, "ustar\00000", 8);
    std::memset(block.data() + 148, ' ', 8);
    std::uint64_t sum = 0;
    for (auto const c : block) sum += static_cast<unsigned char>(c);
    put(148, 6, sum);
    block[154] = '\0';
    std::string padded = content;
    padded.resize((content.size() + 511) / 512 * 512);
    return block + padded;
}

/// A record of the pax format.
inline std::string pax_record(std::string const& key, std::string const& value) {
    auto const rest = ' ' + key + '=' + value + '\n';
    auto size = rest.size() + 1;
    while (std::to_string(size).size() + rest.size() != size) ++size;
    return std::to_string(size) + rest;
}

/// What stands at the end of a tar file.
inline std::string tar_end() { return std::string(1024, '\0'); }

}  // namespace tinkxx::support
