#include "dialog/csv.hpp"

#include <tinkxx/error.hpp>

#include <string_view>

namespace tinkxx::cli {
namespace {

std::string quoted(std::string const& cell) {
    if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
    std::string text = "\"";
    for (auto const c : cell) {
        if (c == '"') text += '"';
        text += c;
    }
    return text + '"';
}

}  // namespace

CsvFile::CsvFile(std::string const& place, Context& context)
    : place_{place}, out_{place == "-" ? context.out() : file_} {
    if (place != "-") file_.open(place, std::ios::binary | std::ios::trunc);
    finish();
}

void CsvFile::row(std::vector<std::string> const& cells) {
    bool first = true;
    for (auto const& cell : cells) {
        if (!first) out_ << ',';
        first = false;
        out_ << quoted(cell);
    }
    out_ << "\r\n";
}

void CsvFile::finish() {
    out_.flush();
    if (place_ == "-" || out_) return;
    Error{{.kind = ErrorKind::validation,
           .message = "csv: " + place_ + " cannot be written; name another file"}}
        .raise();
}

}  // namespace tinkxx::cli
