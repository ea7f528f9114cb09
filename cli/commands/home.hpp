#pragma once

#include "output/terminal.hpp"

#include <string>

namespace tinkxx::cli {

struct HomeArguments {
    std::string home{};
    bool repair{false};
    bool remove{false};
    bool json{false};
};

/// Looks whether the home of a server is whole, and repairs it if asked to.
[[nodiscard]] Exit check_home(HomeArguments const& arguments, Terminal& terminal);

}  // namespace tinkxx::cli
