#pragma once

#include "local/base_models/base_models.hpp"
#include "local/checkpoints/checkpoints.hpp"
#include "local/sampling/sample_request.hpp"
#include "local/sampling/samplers.hpp"
#include "local/services/services.hpp"
#include "local/sessions/sessions.hpp"
#include "local/usage/usage.hpp"
#include "local/weights/weights_cache.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::local {

/// Samples that are pending, from their requests to their results. Loop thread.
class Sampling {
public:
    struct Uses {
        Services& services;
        BaseModels const& bases;
        Sessions& sessions;
        Samplers const& samplers;
        Checkpoints const& checkpoints;
        WeightsCache& weights;
        Usage& usage;
    };
    explicit Sampling(Uses const& uses) : uses_{uses} {}
    Sampling(Sampling const&) = delete;
    Sampling& operator=(Sampling const&) = delete;

    // Endpoints.
    [[nodiscard]] MaybeRefused asample(Ask& ask);
    [[nodiscard]] MaybeRefused stream_sample(Ask& ask);
    [[nodiscard]] MaybeRefused cancel_future(Ask& ask);

    /// Computes samples that were accepted before a restart.
    void resume(std::vector<RequestRow> rows);
    /// The result of a request is kept no longer.
    void forget(std::string const& id) { prints_.erase(id); }
    /// Why the request has to wait, if it is a sample that has to.
    [[nodiscard]] std::optional<QueueNote> why_waiting(std::string const& id) const;
    /// What pending samples hold or may come to hold.
    [[nodiscard]] std::size_t pending_bytes() const noexcept { return bytes_; }

private:
    struct PendingSample {
        std::optional<engine::JobId> job{};
        /// The key of the weights that it samples from, if they are not those of a base model.
        std::string weights{};
        /// Whom it counts for, and what it holds or may come to hold.
        std::string session{};
        std::size_t bytes{0};
    };
    using Job = std::shared_ptr<SampleJob>;

    [[nodiscard]] MaybeRefused read(
        Ask& ask, tinkxx::detail::UniqueFunction<MaybeRefused(Ask&, SampleRead)> then);
    [[nodiscard]] MaybeRefused submit(Ask& ask, SampleRead read);
    [[nodiscard]] MaybeRefused submit_stream(Ask& ask, SampleRead read);
    /// The weights that a request samples from.
    [[nodiscard]] Outcome<SampleSource> source_of(std::string_view operation,
                                                  wire::server::Sample const& request);
    [[nodiscard]] Outcome<SampleSource> source_of_sampler(std::string_view operation,
                                                          std::string const& sampler);
    /// Checks a request and finds what it samples from.
    [[nodiscard]] Outcome<Job> prepare(std::string_view operation, SampleRead read);
    /// Refuses a sample if there is no room for it.
    [[nodiscard]] MaybeRefused admit(std::string_view operation, SampleJob const& sample) const;

    void begin(SampleJob const& sample);
    /// It does not count any more.
    void end(std::string const& id);
    void cancel(std::string const& id);
    void resume_some();
    void resume(std::string const& id, Result<wire::server::Sample> decoded);
    [[nodiscard]] MaybeRefused compute_again(std::string const& id, wire::server::Sample request);

    // The steps of a sample.
    void compute(Job const& sample);
    void submit_to_engine(Job const& sample);
    void sampled(Job const& sample, engine::SampleResult result);
    void score_targets(Job const& sample);
    void score_samples(Job const& sample, std::size_t index);
    void finish(Job const& sample);
    void keep(Job const& sample, std::string payload);
    void fail(Job const& sample, Error const& error);
    void release(Job const& sample);

    Uses uses_;
    std::map<std::string, PendingSample> pending_{};
    /// How many of them each session has.
    std::map<std::string, std::size_t> shares_{};
    std::size_t bytes_{0};
    /// Of samples that are pending or kept.
    std::map<std::string, Fingerprint> prints_{};
    /// Accepted before a restart, and not computed yet.
    std::vector<RequestRow> unfinished_{};
};

}  // namespace tinkxx::local
