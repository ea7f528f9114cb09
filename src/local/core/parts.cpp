#include "local/core/parts.hpp"

#include <string_view>
#include <utility>

namespace tinkxx::local {

namespace {

/// The copies that were made, by the keys of their requests.
Checkpoints::Copies copies_of(std::map<std::string, std::string> const& meta) {
    constexpr std::string_view copy = "copy ";
    Checkpoints::Copies copies;
    for (auto const& [key, text] : meta) {
        if (key.starts_with(copy)) copies[key.substr(copy.size())] = text;
    }
    return copies;
}

void tell_gauges(Services const& services, Parts const& parts, ServerInfo::Gauge const& gauge) {
    auto const& results = *services.results;
    gauge("tinkxx_sessions_active", parts.sessions.active_count());
    gauge("tinkxx_models_loaded", parts.models.count());
    gauge("tinkxx_requests_pending", results.pending_count());
    gauge("tinkxx_samples_pending", results.pending_samples());
    gauge("tinkxx_training_bytes_pending", parts.models.pending_bytes());
    gauge("tinkxx_sample_bytes_pending", parts.sampling.pending_bytes());
    gauge("tinkxx_body_bytes_reading", services.bodies.reading_bytes());
    gauge("tinkxx_polls_waiting", results.waiting());
    gauge("tinkxx_results_kept", results.kept());
    gauge("tinkxx_result_bytes", results.memory_bytes());
    gauge("tinkxx_kept_bytes", parts.sessions.kept_bytes());
    gauge("tinkxx_checkpoints", parts.checkpoints.count());
    gauge("tinkxx_adapter_bytes", parts.weights.bytes());
    gauge("tinkxx_adapter_bytes_limit", services.options.limits.adapter_bytes);
}

}  // namespace

// Parts call each other, so some of them are given references to those that come after them; none
// is used before all are made.
Parts::Parts(Services& services, BaseModels::Map served, Stored& stored, std::int64_t next_number)
    : bases{services, std::move(served)},
      folders{services, next_number},
      sessions{services, std::move(stored.sessions)},
      usage{services, sessions, std::move(stored.usage), std::move(stored.events)},
      weights{services, bases, folders},
      runs{services, sessions, checkpoints, std::move(stored.runs)},
      checkpoints{{services, runs, usage, folders, weights},
                  std::move(stored.checkpoints),
                  copies_of(stored.meta)},
      samplers{{services, bases, sessions, checkpoints, weights}, std::move(stored.samplers)},
      models{{services, bases, sessions, runs, weights, folders}},
      passes{{services, bases, runs, models, usage}},
      sampling{{services, bases, sessions, samplers, checkpoints, weights, usage}},
      retrieval{{services, sessions, runs, samplers}},
      saves{{services, sessions, runs, models, checkpoints, samplers, folders}},
      loads{{services, bases, runs, models, checkpoints}},
      copies{{services, sessions, runs, checkpoints, folders}},
      downloads{{services, checkpoints, folders},
                {.api_key = services.options.api_key, .hosts = services.options.hosts},
                stored.meta["secret"]},
      info{{services, bases, sessions, [this, &services](ServerInfo::Gauge const& gauge) {
                tell_gauges(services, *this, gauge);
            }}} {
    // In this order: a session that ends unloads its models before its weights go.
    sessions.add(models);
    sessions.add(samplers);
    sessions.add(runs);
    sessions.add(checkpoints);
}

}  // namespace tinkxx::local
