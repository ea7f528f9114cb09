#include "text/unicode/normal_forms.hpp"

#include "text/unicode/properties.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <cstring>

namespace tinkxx::text {
namespace {

/// Up to U+1FFFF; those above have no class, and only compatibility ideographs change.
class NfcTable {
public:
    static NfcTable const& get() {
        static NfcTable const table;
        return table;
    }

    NfcKind operator[](char32_t c) const noexcept {
        if (c < kinds_.size()) return kinds_[c];
        return c < 0x2f800 || c >= 0x2fa20 ? NfcKind::inert : NfcKind::unsure;
    }

private:
    NfcTable() : kinds_{nfc_kinds(0x20000)} {}

    std::vector<NfcKind> kinds_;
};

constexpr std::uint64_t ascii_mask = 0x8080808080808080U;

struct Pending {
    std::uint8_t combining{};
    Change change{};
};

class Decomposer {
public:
    Decomposer(bool compatible, std::vector<Change>& out) : compatible_{compatible}, out_{out} {}

    void add(char32_t c) {
        if (c < 0xa0) {
            push(c, 0);
        } else if (c >= 0xac00 && c < 0xac00 + 11172) {
            auto const index = c - 0xac00;
            push(0x1100 + index / 588, 0);
            push(0x1161 + index % 588 / 28, 1);
            if (index % 28 != 0) push(0x11a7 + index % 28, 1);
        } else if (auto const parts = decomposition(c, compatible_); !parts.empty()) {
            push(parts[0], 0);
            for (auto const part : parts.subspan(1)) push(part, 1);
        } else {
            push(c, 0);
        }
    }

    void flush() {
        std::ranges::stable_sort(pending_, {}, &Pending::combining);
        for (auto const& one : pending_) out_.push_back(one.change);
        pending_.clear();
    }

private:
    void push(char32_t c, int kind) {
        auto const combining = combining_class(c);
        if (combining == 0) {
            flush();
            out_.push_back({.character = c, .kind = kind});
        } else {
            pending_.push_back({combining, {.character = c, .kind = kind}});
        }
    }

    bool compatible_;
    std::vector<Change>& out_;
    std::vector<Pending> pending_;
};

/// Joins what can be joined; the joined character replaces what all its parts replaced.
std::vector<Change> recomposed(std::vector<Change> const& parts) {
    std::vector<Change> out;
    out.reserve(parts.size());
    std::size_t starter = parts.size();  // where the last one is in `out`; none yet
    auto const none = parts.size();
    int last_class = -1;  // of what stands between the starter and here; -1: nothing
    for (auto const& part : parts) {
        auto const combining = combining_class(part.character);
        if (starter != none && (last_class < 0 || last_class < combining)) {
            if (auto const c = compose(out[starter].character, part.character); c != 0) {
                out[starter].character = c;
                out[starter].kind += part.kind - 1;
                continue;
            }
        }
        if (combining == 0) {
            starter = out.size();
            last_class = -1;
        } else {
            last_class = combining;
        }
        out.push_back(part);
    }
    return out;
}

}  // namespace

bool is_surely_nfc(std::string_view text) {
    auto const& table = NfcTable::get();
    char const* p = text.data();
    char const* const end = p + text.size();
    std::uint8_t last = 0;
    while (p < end) {
        // Everything below U+0300, which begins with the byte 0xcc, is inert.
        if (static_cast<unsigned char>(*p) < 0xcc) {
            last = 0;
            std::uint64_t word = 0;
            while (end - p >= 8 && (std::memcpy(&word, p, 8), (word & ascii_mask) == 0)) p += 8;
            while (p < end && static_cast<unsigned char>(*p) < 0xcc) ++p;
            continue;
        }
        auto const c = next_character(p);
        auto const kind = table[c];
        if (kind == NfcKind::inert) {
            last = 0;
        } else if (kind == NfcKind::unsure) {
            return false;
        } else {
            auto const combining = combining_class(c);
            if (combining < last) return false;
            last = combining;
        }
    }
    return true;
}

std::vector<Change> normalized(std::string_view text, NormalForm form) {
    std::vector<Change> changes;
    changes.reserve(text.size());
    Decomposer decomposer{form == NormalForm::nfkc || form == NormalForm::nfkd, changes};
    for (char const *p = text.data(), *end = p + text.size(); p < end;) {
        decomposer.add(next_character(p));
    }
    decomposer.flush();
    if (form == NormalForm::nfd || form == NormalForm::nfkd) return changes;
    return recomposed(changes);
}

}  // namespace tinkxx::text
