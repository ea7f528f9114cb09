#pragma once

#include "frame/context.hpp"

#include <fstream>
#include <string>
#include <vector>

namespace tinkxx::cli {

/// A CSV file as of RFC 4180, or stdout if its name is "-". Throws `Error` if it cannot be written.
class CsvFile {
public:
    CsvFile(std::string const& place, Context& context);

    void row(std::vector<std::string> const& cells);
    void finish();

private:
    std::string place_;
    std::ofstream file_{};
    std::ostream& out_;
};

}  // namespace tinkxx::cli
