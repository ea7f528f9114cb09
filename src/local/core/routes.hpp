#pragma once

#include "local/api/outcome.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::local {

struct Ask;
struct Parts;

enum class Service : std::uint8_t {
    served,
    not_served,  ///< answered with a message that says why not
};

/// One row of the table of endpoints.
struct Route {
    std::string_view method{};
    /// `{name}` stands for one part of the path, `{ckpt}` for a checkpoint's kind and name.
    std::string_view path{};
    /// Answers the request, now or later, or returns why it is refused.
    MaybeRefused (*endpoint)(Parts& parts, Ask& ask){nullptr};
    Service service{Service::served};
    /// What it is for, or why it is refused.
    std::string_view note{};
    /// Whether a key is needed, if the server has one.
    bool open{false};
};

/// All of them, in the order of the documentation.
[[nodiscard]] std::span<Route const> routes() noexcept;

struct Match {
    Route const* route{nullptr};
    std::vector<std::string> names{};
    /// There is such a path, but not with that method.
    bool other_method{false};
};
/// The route of a path, without its query.
[[nodiscard]] Match match_route(std::string_view method, std::string_view path);

/// What `%41` stands for; a `%` that nothing follows stands for itself.
[[nodiscard]] std::string percent_decode(std::string_view text);
[[nodiscard]] std::map<std::string, std::string, std::less<>> parse_query(std::string_view query);

}  // namespace tinkxx::local
