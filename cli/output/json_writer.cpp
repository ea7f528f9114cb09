#include "output/json_writer.hpp"

#include "output/terminal.hpp"

#include <charconv>
#include <cmath>
#include <iterator>

namespace tinkxx::cli {

void JsonWriter::new_line() { out_ << '\n' << std::string(2 * filled_.size(), ' '); }

void JsonWriter::separate() {
    if (filled_.empty()) return;
    if (filled_.back()) out_ << ',';
    filled_.back() = true;
    new_line();
}

void JsonWriter::open(char bracket) {
    out_ << bracket;
    filled_.push_back(false);
}

void JsonWriter::end(char bracket) {
    bool const filled = filled_.back();
    filled_.pop_back();
    if (filled) new_line();
    out_ << bracket;
    if (filled_.empty()) out_ << '\n';
}

void JsonWriter::key(std::string_view name) {
    separate();
    out_ << json_text(name) << ": ";
}

void JsonWriter::write(std::string_view text) { out_ << json_text(text); }

void JsonWriter::write(double number) {
    if (!std::isfinite(number)) {
        out_ << "null";  // JSON has no other word for it
        return;
    }
    char digits[32];
    auto const end = std::to_chars(std::begin(digits), std::end(digits), number).ptr;
    out_.write(digits, end - digits);
}

void JsonWriter::write(std::map<std::string, std::string> const& pairs) {
    open('{');
    for (auto const& [name, value] : pairs) member(name, value);
    end('}');
}

}  // namespace tinkxx::cli
