#pragma once

#include <tinkxx/http.hpp>
#include <tinkxx/scheduler.hpp>
#include <tinkxx/types/checkpoint.hpp>

#include "service/rest/asking.hpp"

#include <chrono>

namespace tinkxx::service {

/// Decides what follows each answer to a request for the URL of an archive (R-REST-10, R-REST-11).
/// Touches no socket and reads no clock.
class ArchiveMachine {
public:
    using Value = ArchiveUrl;
    using Action = AskAction<ArchiveUrl>;

    static constexpr int tries = 6;
    static constexpr std::chrono::seconds between_tries{30};
    /// Of an archive whose server does not say it.
    static constexpr std::chrono::minutes lifetime{15};

    [[nodiscard]] Action on_response(HttpResponse const& response, WallTime now);
    [[nodiscard]] Action on_error(Error const& error);
    /// Whether a request that failed so is made again by the layers below.
    [[nodiscard]] static bool may_repeat(Error const& error) noexcept;
    [[nodiscard]] static char const* warning() noexcept {
        return "the server may have to build the archive first, which can take minutes";
    }

private:
    int tried_{0};
};

}  // namespace tinkxx::service
