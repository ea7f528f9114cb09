#pragma once

#include "local/api/access.hpp"
#include "local/checkpoints/checkpoints.hpp"
#include "local/services/services.hpp"
#include "local/weights/folders.hpp"

#include <string>
#include <string_view>

namespace tinkxx::local {

/// Files of checkpoints, by links that this server has signed. Loop thread.
class Downloads {
public:
    struct Uses {
        Services& services;
        Checkpoints const& checkpoints;
        Folders const& folders;
    };
    /// `secret`: by which links are signed.
    Downloads(Uses const& uses, AccessRules access, std::string secret)
        : uses_{uses}, access_{std::move(access)}, secret_{std::move(secret)} {}
    Downloads(Downloads const&) = delete;
    Downloads& operator=(Downloads const&) = delete;

    // Endpoints.
    [[nodiscard]] MaybeRefused archive(Ask& ask);
    [[nodiscard]] MaybeRefused download(Ask& ask);
    [[nodiscard]] MaybeRefused external_urls(Ask& ask);
    [[nodiscard]] MaybeRefused download_file(Ask& ask);

private:
    [[nodiscard]] std::string sign(std::string_view text) const;
    [[nodiscard]] std::string signed_link(Ask const& ask, std::string const& path,
                                          WallTime until) const;
    [[nodiscard]] MaybeRefused check_link(Ask const& ask) const;

    Uses uses_;
    AccessRules access_;
    std::string secret_;
};

}  // namespace tinkxx::local
