#pragma once

#include "local/api/pieces.hpp"
#include "local/services/services.hpp"
#include "local/sessions/sessions.hpp"
#include "local/store/rows.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::local {

class Checkpoints;

/// Training runs: what is remembered of models, in memory or not. Loop thread.
class Runs final : public SessionContents {
public:
    using Map = std::map<std::string, RunRow>;

    Runs(Services& services, Sessions& sessions, Checkpoints const& checkpoints, Map rows)
        : services_{services},
          sessions_{sessions},
          checkpoints_{checkpoints},
          runs_{std::move(rows)} {}

    // Endpoints.
    [[nodiscard]] MaybeRefused list_runs(Ask& ask);
    [[nodiscard]] MaybeRefused get_run(Ask& ask);

    /// None if there is no such run.
    [[nodiscard]] RunRow const* find(std::string const& id) const;
    /// Whether the session may have one more run with such metadata; counts it.
    [[nodiscard]] MaybeRefused check_new(std::string_view operation, std::string const& session,
                                         Texts const& metadata);
    void add(RunRow row);
    void erase(std::string const& id);
    /// Something was asked of its model.
    void touch(std::string const& id);
    /// Its model has been loaded with other weights.
    void set_training(std::string const& id, Training const& training);
    /// The project of its session; empty if there is none.
    [[nodiscard]] std::string project_of(std::string const& id) const;
    /// Writes those down that were touched.
    void write_touched();

    /// What a sweep has seen so far.
    struct Look {
        Walk<Map> walk;
        std::size_t bytes{0};
    };
    [[nodiscard]] Look begin_look() const { return {.walk = Walk{runs_}}; }
    /// Looks at a piece; returns whether that was all.
    [[nodiscard]] bool go_on(Look& look) const;

    [[nodiscard]] std::size_t kept_bytes(std::string const& session) const override;
    void summarize(std::string const& session, SessionHoldings& summary) const override;
    void forget_session(std::string const& session, std::vector<Change>& changes) override;

private:
    Services& services_;
    Sessions& sessions_;
    Checkpoints const& checkpoints_;
    Map runs_;
    /// Rows that differ from what is written.
    std::set<std::string> touched_{};
};

}  // namespace tinkxx::local
