#include "output/terminal.hpp"

#include <tinkxx/log.hpp>

#include <sys/ioctl.h>
#include <unistd.h>

#include <bit>
#include <charconv>
#include <cstdlib>
#include <iostream>

namespace tinkxx::cli {

Terminal Terminal::standard() {
    auto const value = [](char const* name) {
        auto const* const text = std::getenv(name);
        return std::string_view{text == nullptr ? "" : text};
    };
    Screen screen{.out = ::isatty(STDOUT_FILENO) == 1,
                  .err = ::isatty(STDERR_FILENO) == 1,
                  .in = ::isatty(STDIN_FILENO) == 1};
    auto const kind = value("TERM");
    screen.colour = !kind.empty() && kind != "dumb" && value("NO_COLOR").empty();
    winsize size{};
    auto const columns = value("COLUMNS");
    std::size_t set = 0;
    std::from_chars(columns.data(), columns.data() + columns.size(), set);
    if (set != 0) {
        screen.width = set;
    } else if (::ioctl(screen.out ? STDOUT_FILENO : STDERR_FILENO, TIOCGWINSZ, &size) == 0 &&
               size.ws_col != 0) {
        screen.width = size.ws_col;
    }
    return {std::cout, std::cerr, screen};
}

namespace {

std::string rendered(bool colour, std::string_view code, std::string_view text) {
    if (!colour) return std::string{text};
    return "\x1b[" + std::string{code} + "m" + std::string{text} + "\x1b[0m";
}

}  // namespace

std::string Terminal::styled(std::string_view code, std::string_view text) const {
    return rendered(screen_.err && screen_.colour, code, text);
}

std::string Terminal::data(std::string_view code, std::string_view text) const {
    return rendered(colours_data(), code, text);
}

void Terminal::complain(Trouble const& trouble) {
    err_ << red("tinkxx: ") << bold(one_line(trouble.headline)) << '\n';
    if (!trouble.reason.empty()) err_ << "  " << one_line(trouble.reason) << '\n';
    if (!trouble.way_out.empty()) err_ << "  " << dim("try: ") << one_line(trouble.way_out) << '\n';
    err_.flush();
}

void Terminal::warn(std::string_view text) {
    err_ << yellow("warning: ") << one_line(text) << '\n';
    err_.flush();
}

void Terminal::note(std::string_view text) {
    err_ << one_line(text) << '\n';
    err_.flush();
}

std::string json_text(std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out = "\"";
    while (!text.empty()) {
        auto const first = static_cast<unsigned char>(text[0]);
        auto const size =
            first < 0xc0 ? std::size_t{1} : static_cast<std::size_t>(std::countl_one(first));
        auto character = text.substr(0, size);
        if (first == '"' || first == '\\') {
            (out += '\\') += character;
        } else if (first < 0x20) {
            out += "\\u00";
            out += digits[first >> 4U];
            out += digits[first & 15U];
        } else if (first < 0x80 || one_line(character) == character) {
            out += character;
        } else {
            out += "\\ufffd";  // JSON is UTF-8, and names of files need not be
            character = text.substr(0, 1);
        }
        text.remove_prefix(character.size());
    }
    return out += '"';
}

}  // namespace tinkxx::cli
