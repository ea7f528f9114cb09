#pragma once

#include "local/api/pieces.hpp"
#include "local/base_models/base_models.hpp"
#include "local/checkpoints/checkpoints.hpp"
#include "local/services/services.hpp"
#include "local/sessions/sessions.hpp"
#include "local/store/rows.hpp"
#include "local/weights/weights_cache.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::local {

/// Samplers (`sampling sessions`): which weights a client samples from. Loop thread.
class Samplers final : public SessionContents {
public:
    using Map = std::map<std::string, SamplerRow>;

    struct Uses {
        Services& services;
        BaseModels const& bases;
        Sessions& sessions;
        Checkpoints const& checkpoints;
        WeightsCache& weights;
    };
    Samplers(Uses const& uses, Map rows) : uses_{uses}, samplers_{std::move(rows)} {}

    // Endpoints.
    [[nodiscard]] MaybeRefused create_sampling_session(Ask& ask);
    [[nodiscard]] MaybeRefused join_sampling_session(Ask& ask);
    [[nodiscard]] MaybeRefused get_sampler(Ask& ask);

    /// None if there is no such sampler.
    [[nodiscard]] SamplerRow const* find(std::string const& id) const;
    /// Takes in one whose row is written.
    void add(SamplerRow row);
    /// Whether the session may have one more; counts it.
    [[nodiscard]] MaybeRefused check_new(std::string_view operation, std::string const& session);

    /// What a sweep has seen so far.
    struct Look {
        Walk<Map> walk;
        std::size_t bytes{0};
    };
    [[nodiscard]] Look begin_look() const { return {.walk = Walk{samplers_}}; }
    /// Looks at a piece; returns whether that was all.
    [[nodiscard]] bool go_on(Look& look) const {
        return look.walk.go_on(rows_at_once, [&](auto&, auto&) { look.bytes += row_bytes; });
    }

    [[nodiscard]] bool in_use(std::string const& session) const override;
    [[nodiscard]] std::size_t kept_bytes(std::string const& session) const override;
    void summarize(std::string const& session, SessionHoldings& summary) const override;
    /// Removes weights that have no name.
    void end_session(std::string const& session) override;
    void forget_session(std::string const& session, std::vector<Change>& changes) override;

private:
    [[nodiscard]] MaybeRefused make_sampler(Ask& ask,
                                            wire::server::CreateSamplingSession const& request);
    /// The row that a request asks for.
    [[nodiscard]] Outcome<SamplerRow> row_of(
        wire::server::CreateSamplingSession const& request) const;
    [[nodiscard]] MaybeRefused join(Ask& ask, std::string const& id, ChangeQueue::Held turn);

    Uses uses_;
    Map samplers_;
    /// Samplers whose rows are being written.
    Map new_samplers_{};
};

}  // namespace tinkxx::local
