#include "output/table.hpp"

#include <tinkxx/log.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <utility>

namespace tinkxx::cli {
namespace {

constexpr std::size_t gap = 2;

/// The next character, which is removed from `text`.
std::string_view take_character(std::string_view& text) noexcept {
    auto const first = static_cast<unsigned char>(text[0]);
    auto const size =
        first < 0xc0 ? std::size_t{1} : static_cast<std::size_t>(std::countl_one(first));
    auto const character = text.substr(0, size);
    text.remove_prefix(character.size());
    return character;
}

std::uint32_t code_point(std::string_view character) noexcept {
    auto const first = static_cast<unsigned char>(character[0]);
    if (character.size() == 1) return first;
    std::uint32_t point = first & (0x7fU >> character.size());
    for (auto const c : character.substr(1)) {
        point = point << 6U | (static_cast<unsigned char>(c) & 0x3fU);
    }
    return point;
}

struct Range {
    std::uint32_t first{0};
    std::uint32_t last{0};
};

/// Of East Asia, and pictures.
constexpr Range wide[] = {{0x1100, 0x115f}, {0x2e80, 0xa4cf},   {0xac00, 0xd7a3},
                          {0xf900, 0xfaff}, {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                          {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};
/// Put onto the character before.
constexpr Range combined[] = {{0x300, 0x36f}, {0x200b, 0x200f}, {0xfe00, 0xfe0f}};

std::size_t columns_of(std::string_view character) noexcept {
    auto const point = code_point(character);
    auto const within = [point](Range const& range) {
        return point >= range.first && point <= range.last;
    };
    if (std::ranges::any_of(combined, within)) return 0;
    return std::ranges::any_of(wide, within) ? 2 : 1;
}

}  // namespace

std::size_t width_of(std::string_view text) noexcept {
    std::size_t width = 0;
    while (!text.empty()) width += columns_of(take_character(text));
    return width;
}

std::string cut_to(std::string_view text, std::size_t width) {
    if (width_of(text) <= width) return std::string{text};
    if (width == 0) return {};
    std::string kept;
    for (std::size_t used = 0; !text.empty();) {
        auto const character = take_character(text);
        used += columns_of(character);
        if (used > width - 1) break;
        kept += character;
    }
    return kept + "…";
}

void TextTable::add(std::vector<std::string> cells) {
    for (auto& cell : cells) cell = one_line(cell);
    if (!widths_.empty()) {
        print(cells, false);
        return;
    }
    held_.push_back(std::move(cells));
    if (held_.size() == sample) print_all();
}

void TextTable::finish() {
    if (widths_.empty()) print_all();
}

std::size_t TextTable::total() const {
    auto const used = std::ranges::count_if(widths_, [](auto width) { return width != 0; });
    auto const gaps = used == 0 ? 0 : (static_cast<std::size_t>(used) - 1) * gap;
    return std::accumulate(widths_.begin(), widths_.end(), gaps);
}

void TextTable::lay_out() {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        auto width = std::max<std::size_t>(width_of(columns_[i].title), 1);
        for (auto const& cells : held_) width = std::max(width, width_of(cells[i]));
        widths_.push_back(width);
    }
    auto const& screen = terminal_.screen();
    if (!screen.out) return;
    auto const least = [&](std::size_t i) { return std::min(widths_[i], columns_[i].least); };
    while (true) {
        // Without columns that can be spared, if the rest would still be too wide at its least.
        std::size_t needed = 0;
        for (std::size_t i = 0; i < widths_.size(); ++i)
            needed += widths_[i] != 0 ? least(i) + gap : 0;
        auto const most = std::ranges::max_element(columns_, {}, &Column::spare);
        auto const at = static_cast<std::size_t>(most - columns_.begin());
        if (needed <= screen.width + gap || most->spare == 0) break;
        widths_[at] = 0;
        columns_[at].spare = 0;
    }
    while (total() > screen.width) {
        std::size_t widest = widths_.size();
        for (std::size_t i = 0; i < widths_.size(); ++i) {
            if (widths_[i] > least(i) &&
                (widest == widths_.size() || widths_[i] > widths_[widest])) {
                widest = i;
            }
        }
        if (widest == widths_.size()) break;
        --widths_[widest];
    }
}

void TextTable::print_all() {
    lay_out();
    std::vector<std::string> titles;
    for (auto const& column : columns_) titles.push_back(column.title);
    print(titles, true);
    for (auto const& cells : std::exchange(held_, {})) print(cells, false);
}

void TextTable::print(std::vector<std::string> const& cells, bool head) {
    bool const people = terminal_.screen().out;
    std::string line;
    std::size_t blanks = 0;
    bool first = true;
    for (std::size_t i = 0; i < cells.size(); ++i) {
        if (widths_[i] == 0) continue;
        auto const text = people ? cut_to(cells[i], widths_[i]) : cells[i];
        auto const taken = width_of(text);
        auto const room = widths_[i] > taken ? widths_[i] - taken : 0;
        if (!first) blanks += gap;
        first = false;
        if (columns_[i].right) blanks += room;
        if (!text.empty()) {
            line += std::string(blanks, ' ') + text;
            blanks = 0;
        }
        if (!columns_[i].right) blanks += room;
    }
    terminal_.out() << (head ? terminal_.data("1", line) : line) << '\n';
}

void print_properties(Terminal& terminal,
                      std::vector<std::pair<std::string, std::string>> const& properties) {
    std::size_t width = 0;
    for (auto const& [name, value] : properties) width = std::max(width, width_of(name));
    for (auto const& [name, value] : properties) {
        terminal.out() << terminal.data("1", name) << std::string(width - width_of(name) + gap, ' ')
                       << one_line(value) << '\n';
    }
}

}  // namespace tinkxx::cli
