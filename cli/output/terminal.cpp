#include "output/terminal.hpp"

#include <unistd.h>

#include <cstdlib>
#include <iostream>

namespace tinkxx::cli {

Terminal Terminal::standard() {
    auto const set = [](char const* name) {
        auto const* const value = std::getenv(name);
        return value != nullptr && *value != '\0';
    };
    auto const* const kind = std::getenv("TERM");
    bool const dumb = kind == nullptr || std::string_view{kind} == "dumb";
    return {std::cout, std::cerr, ::isatty(STDERR_FILENO) == 1 && !dumb && !set("NO_COLOR")};
}

std::string Terminal::styled(std::string_view code, std::string_view text) const {
    if (!colour_) return std::string{text};
    return "\x1b[" + std::string{code} + "m" + std::string{text} + "\x1b[0m";
}

void Terminal::complain(Trouble const& trouble) {
    err_ << red("tinkxx: ") << bold(trouble.headline) << '\n';
    if (!trouble.reason.empty()) err_ << "  " << trouble.reason << '\n';
    if (!trouble.way_out.empty()) err_ << "  " << dim("try: ") << trouble.way_out << '\n';
    err_.flush();
}

void Terminal::warn(std::string_view text) {
    err_ << yellow("warning: ") << text << '\n';
    err_.flush();
}

std::string json_text(std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out = "\"";
    for (char const c : text) {
        if (c == '"' || c == '\\') {
            (out += '\\') += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            out += "\\u00";
            out += digits[static_cast<unsigned char>(c) >> 4U];
            out += digits[static_cast<unsigned char>(c) & 15U];
        } else {
            out += c;
        }
    }
    return out += '"';
}

}  // namespace tinkxx::cli
