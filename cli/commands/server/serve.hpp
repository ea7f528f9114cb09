#pragma once

#include "frame/command.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tinkxx::cli {

struct ServeArguments {
    /// `FOLDER` or `NAME=FOLDER`.
    std::vector<std::string> models{};
    std::string host{"127.0.0.1"};
    std::uint16_t port{8080};
    /// Empty: $TINKXX_HOME, then the user's folder for data.
    std::string home{};
    std::string api_key{};
    std::vector<std::string> allowed_hosts{};
    /// 0: one for each CPU.
    unsigned threads{0};
    std::size_t cache_mib{1024};
    std::string chaos{};
    std::uint64_t seed{0};
    bool json{false};
    bool verbose{false};
};

/// Serves until SIGTERM or SIGINT.
[[nodiscard]] Exit serve(ServeArguments const& arguments, Context& context);

[[nodiscard]] Command serve_command();

}  // namespace tinkxx::cli
