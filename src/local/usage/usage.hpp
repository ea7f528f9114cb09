#pragma once

#include "local/services/services.hpp"
#include "local/sessions/sessions.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::local {

/// Counts tokens by the hour, and notes what happens to checkpoints. Loop thread.
class Usage {
public:
    using Counts = std::map<std::string, std::int64_t>;
    using Events = std::vector<std::pair<std::int64_t, std::string>>;

    Usage(Services& services, Sessions const& sessions, Counts counts, Events events);
    Usage(Usage const&) = delete;
    Usage& operator=(Usage const&) = delete;

    // Endpoints.
    [[nodiscard]] MaybeRefused audit(Ask& ask);
    [[nodiscard]] MaybeRefused usage_events(Ask& ask);

    /// What tokens are counted as.
    struct Tokens {
        std::string session{};
        std::string base_model{};
        /// `training`, `sampling_prefill` or `sampling_sample`.
        std::string_view type{};
        bool cached{false};
    };
    /// Adds to `changes` what makes the count last.
    void count_tokens(std::vector<Change>& changes, Tokens const& what, std::size_t tokens);
    /// Adds an event to `changes`. Call the returned function once they are written.
    [[nodiscard]] tinkxx::detail::UniqueFunction<void()> note_event(std::vector<Change>& changes,
                                                                    std::string_view event,
                                                                    std::string const& path);
    /// Forgets the oldest counts if there are too many.
    void forget_old();

private:
    struct Report;
    /// Does a piece of the report; returns whether all that is to be read on the loop is read.
    bool read(Report& report) const;

    Services& services_;
    Sessions const& sessions_;
    /// By hour, session, base model, type and whether cached.
    Counts counts_;
    std::deque<std::pair<std::int64_t, std::string>> events_{};
    std::int64_t next_event_{1};
};

}  // namespace tinkxx::local
