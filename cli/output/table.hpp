#pragma once

#include "output/terminal.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::cli {

/// Columns that `text` takes on a terminal.
[[nodiscard]] std::size_t width_of(std::string_view text) noexcept;
/// `text` in at most `width` columns; what was cut off shows as an ellipsis.
[[nodiscard]] std::string cut_to(std::string_view text, std::size_t width);

/// A column of a table.
struct Column {
    std::string title{};
    /// Numbers stand at the right.
    bool right{false};
    /// It is not cut below that.
    std::size_t least{4};
    /// Where there is no room, columns with the largest number are left out first; 0: never.
    int spare{0};
};

/// Prints rows below each other. Where people read it, it fits the terminal: long cells are cut,
/// and columns that can be spared are left out. Elsewhere nothing is cut.
///
/// Columns get their width from the first rows, so that a list of any length takes little memory.
class TextTable {
public:
    TextTable(Terminal& terminal, std::vector<Column> columns)
        : terminal_{terminal}, columns_{std::move(columns)} {}

    /// As many cells as there are columns.
    void add(std::vector<std::string> cells);
    /// Prints what is still held back.
    void finish();

private:
    /// Rows that are looked at.
    static constexpr std::size_t sample = 200;

    void lay_out();
    void print_all();
    void print(std::vector<std::string> const& cells, bool head);
    [[nodiscard]] std::size_t total() const;

    Terminal& terminal_;
    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> held_{};
    /// 0: left out.
    std::vector<std::size_t> widths_{};
};

/// A view of one thing: names and values below each other. Values are broken, not cut.
void print_properties(Terminal& terminal,
                      std::vector<std::pair<std::string, std::string>> const& properties);

}  // namespace tinkxx::cli
