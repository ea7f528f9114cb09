#pragma once

#include "output/terminal.hpp"

namespace tinkxx::cli {

struct VersionArguments {
    bool json{false};
};

Exit version(VersionArguments const& arguments, Terminal& terminal);

}  // namespace tinkxx::cli
