#include "simulation/common/messages.hpp"

namespace tinkxx::simulation {

std::string_view json_member(std::string_view json, std::string_view name) {
    auto const mark = '"' + std::string{name} + "\":";
    auto const at = json.find(mark);
    if (at == std::string_view::npos) return {};
    auto rest = json.substr(at + mark.size());
    if (rest.starts_with('"')) {
        rest.remove_prefix(1);
        return rest.substr(0, rest.find('"'));
    }
    return rest.substr(0, rest.find_first_of(",}]"));
}

void append_varint(std::string& out, std::uint64_t value) {
    while (value >= 0x80U) {
        out += static_cast<char>((value & 0x7fU) | 0x80U);
        value >>= 7U;
    }
    out += static_cast<char>(value);
}

void append_bytes(std::string& out, unsigned field, std::string_view bytes) {
    append_varint(out, (field << 3U) | 2U);
    append_varint(out, bytes.size());
    out += bytes;
}

}  // namespace tinkxx::simulation
