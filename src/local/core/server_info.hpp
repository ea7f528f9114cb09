#pragma once

#include "local/base_models/base_models.hpp"
#include "local/services/services.hpp"
#include "local/sessions/sessions.hpp"

#include <cstddef>
#include <functional>
#include <string_view>

namespace tinkxx::local {

/// What the server says about itself. Loop thread.
class ServerInfo {
public:
    using Gauge = std::function<void(std::string_view name, std::size_t value)>;
    struct Uses {
        Services& services;
        BaseModels const& bases;
        Sessions& sessions;
        /// Calls back for each number that rises and falls.
        std::function<void(Gauge const& gauge)> gauges{};
    };
    explicit ServerInfo(Uses uses) : uses_{std::move(uses)} {}

    // Endpoints.
    [[nodiscard]] MaybeRefused client_config(Ask& ask);
    [[nodiscard]] MaybeRefused dynamic_config(Ask& ask);
    [[nodiscard]] MaybeRefused healthz(Ask& ask);
    [[nodiscard]] MaybeRefused capabilities(Ask& ask);
    [[nodiscard]] MaybeRefused api_key_info(Ask& ask);
    [[nodiscard]] MaybeRefused telemetry(Ask& ask);
    [[nodiscard]] MaybeRefused metrics(Ask& ask);
    [[nodiscard]] MaybeRefused describe(Ask& ask);
    /// Of all paths that are refused.
    [[nodiscard]] MaybeRefused not_served(Ask& ask);

private:
    Uses uses_;
};

}  // namespace tinkxx::local
