#include "text/errors/refuse.hpp"
#include "text/tokenizer/steps/normalizers.hpp"
#include "text/unicode/properties.hpp"
#include "text/unicode/utf8.hpp"

#include <cstring>
#include <vector>

namespace tinkxx::text {
namespace {

/// Clusters of more bytes are looked up character by character.
constexpr std::size_t longest_cluster = 5;

/// Adds the changes that make `to` of the next characters.
void add_replacement(std::size_t old_count, std::string_view to, std::vector<Change>& changes) {
    auto const before = changes.size();
    for (char const *p = to.data(), *end = p + to.size(); p < end;) {
        changes.push_back({.character = next_character(p)});
    }
    auto const added = changes.size() - before;
    if (added > old_count) {
        for (auto i = changes.size() - (added - old_count); i < changes.size(); ++i) {
            changes[i].kind = 1;
        }
    } else if (added < old_count && !changes.empty()) {
        // Even if what is shortened is another part: so it is where the rule comes from.
        changes.back().kind -= static_cast<int>(old_count - added);
    }
}

}  // namespace

PrecompiledNormalizer::PrecompiledNormalizer(std::string_view table, std::string const& field) {
    std::uint32_t size = 0;
    if (table.size() >= sizeof size) std::memcpy(&size, table.data(), sizeof size);
    if (table.size() < sizeof size || size > table.size() - sizeof size || size < 4) {
        refuse_file(field, "is too short; the file is damaged");
    }
    units_.resize(size / 4);
    std::memcpy(units_.data(), table.data() + sizeof size, units_.size() * 4);
    replacements_ = table.substr(sizeof size + size / 4 * 4);
    if (find_invalid_utf8(replacements_) != replacements_.size()) {
        refuse_file(field, "has replacements that are not UTF-8; the file is damaged");
    }
}

bool PrecompiledNormalizer::find(std::string_view part,
                                 std::string_view& replacement) const noexcept {
    // A unit of the double array: the label in the low byte, whether a value follows in bit 8, and
    // how far the children are in the rest.
    auto const children = [](std::uint32_t unit) {
        return static_cast<std::size_t>(unit >> 10U) << ((unit & 1U << 9U) >> 6U);
    };
    auto node = children(units_[0]);
    for (auto const c : part) {
        auto const byte = static_cast<unsigned char>(c);
        if (byte == 0) return false;
        node ^= byte;
        if (node >= units_.size()) return false;
        auto const unit = units_[node];
        if ((unit & (1U << 31U | 0xffU)) != byte) return false;
        node ^= children(unit);
        if (node >= units_.size()) return false;
        if ((unit >> 8U & 1U) == 0) continue;
        auto const begin = units_[node] & 0x7fffffffU;
        if (begin > replacements_.size()) return false;
        replacement = std::string_view{replacements_}.substr(begin);
        replacement = replacement.substr(0, replacement.find('\0'));
        return true;
    }
    return false;
}

void PrecompiledNormalizer::apply(AlignedText& text) const {
    std::vector<Change> changes;
    auto rest = text.text();
    auto modified = false;
    std::string_view replacement;
    while (!rest.empty()) {
        auto const cluster = rest.substr(0, cluster_length(rest));
        rest.remove_prefix(cluster.size());
        if (cluster.size() <= longest_cluster && find(cluster, replacement)) {
            add_replacement(count_characters(cluster), replacement, changes);
            modified = true;
            continue;
        }
        for (std::size_t at = 0; at < cluster.size();) {
            auto const one =
                cluster.substr(at, utf8_length(static_cast<unsigned char>(cluster[at])));
            at += one.size();
            if (find(one, replacement)) {
                add_replacement(1, replacement, changes);
                modified = true;
            } else {
                auto const* p = one.data();
                changes.push_back({.character = next_character(p)});
            }
        }
    }
    if (modified) text.transform(changes);
}

}  // namespace tinkxx::text
