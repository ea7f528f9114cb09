#include "local/weights/weights_cache.hpp"

#include "base/loop/loop_rule.hpp"
#include "engine/memory.hpp"
#include "local/weights/adapter_config.hpp"

#include <algorithm>
#include <utility>

namespace tinkxx::local {

namespace {

std::string mib(std::size_t bytes) { return std::to_string(bytes >> 20U); }

}  // namespace

std::string const& WeightsCache::add(Source source) {
    auto const at = weights_.try_emplace(source.folder).first;
    at->second.source = std::move(source);
    return at->first;
}

std::string const& WeightsCache::add(CheckpointRow const& row) {
    return add(Source{.base = row.base_model,
                      .folder = row.folder,
                      .training = row.training,
                      .files = row.files,
                      .name = row.path.text()});
}

void WeightsCache::load(std::string const& key, Ready done) {
    TINKXX_ASSERT_LOOP(services_.scheduler);
    auto& weights = weights_.at(key);
    weights.used = services_.scheduler.now();
    if (weights.state == LoadedWeights::State::ready) return done({});
    weights.waiting.push_back(std::move(done));
    if (weights.state == LoadedWeights::State::absent) begin_load(key);
}

MaybeRefused WeightsCache::reserve_for_model(std::string_view operation, std::size_t bytes) {
    if (make_room(bytes)) {
        model_bytes_ += bytes;
        return {};
    }
    return Refused{400, std::string{operation} + ": the adapter needs " + mib(bytes) +
                            " MiB, and of the " + mib(services_.options.limits.adapter_bytes) +
                            " MiB for adapters " + mib(this->bytes()) +
                            " MiB are in use; unload a model or finish its session, choose a "
                            "smaller rank, or give the server more"};
}

bool WeightsCache::make_room(std::size_t bytes) {
    while (this->bytes() + bytes > services_.options.limits.adapter_bytes) {
        // The one that was used longest ago goes; it can be read again.
        auto oldest = weights_.end();
        for (auto at = weights_.begin(); at != weights_.end(); ++at) {
            auto const& one = at->second;
            if (one.state != LoadedWeights::State::ready || one.active > 0) continue;
            if (oldest == weights_.end() || one.used < oldest->second.used) oldest = at;
        }
        if (oldest == weights_.end()) return false;
        drop(std::string{oldest->first});
    }
    return true;
}

void WeightsCache::sweep() {
    auto const now = services_.scheduler.now();
    std::vector<std::string> idle;
    for (auto const& [key, one] : weights_) {
        if (one.state != LoadedWeights::State::ready || one.active > 0) continue;
        if (now - one.used >= services_.options.weights_keep) idle.push_back(key);
    }
    for (auto const& key : idle) drop(key);
}

bool WeightsCache::starved(std::string const& key) const {
    return std::ranges::find(starved_, key) != starved_.end();
}

void WeightsCache::begin_load(std::string const& key) {
    auto& weights = weights_.at(key);
    auto const& source = weights.source;
    auto const& base = bases_.all().at(source.base);
    auto const limit = services_.options.limits.adapter_bytes;
    weights.bytes = engine::adapter_bytes(base.config, to_lora(source.training));
    if (!make_room(weights.bytes)) {
        bool const could = model_bytes_ + weights.bytes <= limit;
        if (could) {
            if (!starved(key)) starved_.push_back(key);
            return;
        }
        Error const full{
            ErrorDetails{.kind = ErrorKind::request_failed,
                         .message = "sample: there is no memory for these weights: they need " +
                                    mib(weights.bytes) + " MiB, and models in training use " +
                                    mib(model_bytes_) + " of " + mib(limit) +
                                    " MiB; unload a model, or give the server more",
                         .category = ErrorCategory::server}};
        for (auto& one : std::exchange(weights.waiting, {})) one(full);
        return;
    }
    weights.state = LoadedWeights::State::loading;
    weights_bytes_ += weights.bytes;
    folders_.load(
        {.adapter = key, .model = source.base, .folder = folders_.place(source.folder)},
        source.name, source.files, [] {},
        [this, key](Result<engine::AdapterInfo> const& outcome) { loaded(key, outcome); });
}

void WeightsCache::loaded(std::string const& key, Result<engine::AdapterInfo> const& outcome) {
    auto& here = weights_.at(key);
    auto waiting = std::exchange(here.waiting, {});
    if (outcome) {
        here.state = LoadedWeights::State::ready;
        // None of them may drop it before all of them have it.
        ++here.active;
        for (auto& one : waiting) one({});
        return release(key);
    }
    here.state = LoadedWeights::State::absent;
    weights_bytes_ -= here.bytes;
    for (auto& one : waiting) one(outcome.error());
    retry_starved();
}

void WeightsCache::release(std::string const& key) {
    TINKXX_ASSERT_LOOP(services_.scheduler);
    auto const found = weights_.find(key);
    if (found == weights_.end()) return;
    auto& weights = found->second;
    if (weights.active > 0) --weights.active;
    if (weights.active > 0) return;
    weights.used = services_.scheduler.now();
    if (weights.doomed) drop(std::string{key});
    retry_starved();
}

void WeightsCache::retire(std::string const& folder) {
    auto const used = weights_.find(folder);
    if (used == weights_.end()) return folders_.remove(folder);
    used->second.doomed = true;
    if (used->second.active == 0) drop(folder);
}

void WeightsCache::drop(std::string const& key) {
    auto const found = weights_.find(key);
    if (found == weights_.end()) return;
    auto& weights = found->second;
    if (weights.state == LoadedWeights::State::ready) {
        weights.state = LoadedWeights::State::absent;
        weights_bytes_ -= weights.bytes;
        services_.engine->submit(engine::DropAdapter{.adapter = key},
                                 [](Result<void> const& /*gone*/) {});
    }
    if (weights.doomed && weights.state == LoadedWeights::State::absent &&
        weights.waiting.empty()) {
        folders_.remove(weights.source.folder);
        weights_.erase(found);
    }
}

void WeightsCache::retry_starved() {
    for (auto& key : std::exchange(starved_, {})) {
        auto const found = weights_.find(key);
        if (found == weights_.end() || found->second.state != LoadedWeights::State::absent) {
            continue;
        }
        if (!found->second.waiting.empty()) begin_load(key);
    }
}

}  // namespace tinkxx::local
