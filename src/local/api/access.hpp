#pragma once

#include "local/api/handler.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::local {

/// Who may talk to a server.
struct AccessRules {
    /// Empty: everybody.
    std::string api_key{};
    /// Beside `localhost` and addresses.
    std::vector<std::string> hosts{};
};

/// Whether two texts are equal; takes as long for all texts of a length.
[[nodiscard]] bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept;

struct Forbidden {
    int status{403};
    std::string detail{};
};

/// Why a request must not be served; none if it may. A browser on a page from elsewhere is turned
/// away by its `Origin` and `Sec-Fetch-Site`, and by a `Host` that somebody made to lead here.
/// `needs_key`: not for what names its own permission, such as a signed link.
[[nodiscard]] std::optional<Forbidden> forbidden(AccessRules const& rules,
                                                 ServerRequest const& request, bool needs_key);

}  // namespace tinkxx::local
