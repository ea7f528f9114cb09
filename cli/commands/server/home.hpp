#pragma once

#include "frame/command.hpp"

#include <string>

namespace tinkxx::cli {

struct HomeArguments {
    std::string home{};
    bool repair{false};
    bool remove{false};
    bool json{false};
};

/// Looks whether the home of a server is whole, and repairs it if asked to.
[[nodiscard]] Exit check_home(HomeArguments const& arguments, Context& context);

[[nodiscard]] Command home_check_command();

}  // namespace tinkxx::cli
