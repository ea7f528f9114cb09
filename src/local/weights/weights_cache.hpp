#pragma once

#include "local/base_models/base_models.hpp"
#include "local/services/services.hpp"
#include "local/store/rows.hpp"
#include "local/weights/folders.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::local {

/// Weights to sample from, by their folder: they are loaded when somebody samples from them, and go
/// when memory is needed, or when nobody has used them for a while. Models in training take their
/// memory from here too. Loop thread.
class WeightsCache {
public:
    WeightsCache(Services& services, BaseModels const& bases, Folders& folders)
        : services_{services}, bases_{bases}, folders_{folders} {}
    WeightsCache(WeightsCache const&) = delete;
    WeightsCache& operator=(WeightsCache const&) = delete;

    /// Where weights come from.
    struct Source {
        std::string base{};
        std::string folder{};
        Training training{};
        FileMarks files{};
        /// What its client calls it, for messages.
        std::string name{};
    };
    /// Weights that may be sampled from; returns their key.
    std::string const& add(Source source);
    std::string const& add(CheckpointRow const& row);

    using Ready = tinkxx::detail::UniqueFunction<void(Result<void>)>;
    /// Calls back once the weights are in memory.
    void load(std::string const& key, Ready done);
    /// While they are used they stay in memory.
    void use(std::string const& key) { ++weights_.at(key).active; }
    void release(std::string const& key);
    /// Removes a folder once nobody samples from it.
    void retire(std::string const& folder);

    /// Takes memory for a model; refuses if there is too little.
    [[nodiscard]] MaybeRefused reserve_for_model(std::string_view operation, std::size_t bytes);
    /// A model has given its memory back. It is free once the engine has dropped the model, after
    /// which `retry_starved` is called.
    void give_back(std::size_t bytes) noexcept { model_bytes_ -= bytes; }
    /// Loads weights that waited for memory.
    void retry_starved();

    /// Removes from memory what nobody has used for a while; it can be read again.
    void sweep();

    /// Of models and weights.
    [[nodiscard]] std::size_t bytes() const noexcept { return model_bytes_ + weights_bytes_; }
    /// Whether these wait for memory.
    [[nodiscard]] bool starved(std::string const& key) const;

private:
    struct LoadedWeights {
        Source source{};
        std::size_t bytes{0};
        enum class State : std::uint8_t { absent, loading, ready } state{State::absent};
        /// What uses them now, and who waits for them to be loaded.
        std::size_t active{0};
        std::vector<Ready> waiting{};
        /// When somebody began or ended to use them.
        TimePoint used{};
        /// To be removed from the disk once nobody uses them.
        bool doomed{false};
    };

    [[nodiscard]] bool make_room(std::size_t bytes);
    void begin_load(std::string const& key);
    void loaded(std::string const& key, Result<engine::AdapterInfo> const& outcome);
    /// Removes them from memory, and from the disk if they are doomed.
    void drop(std::string const& key);

    Services& services_;
    BaseModels const& bases_;
    Folders& folders_;
    std::map<std::string, LoadedWeights> weights_{};
    std::size_t weights_bytes_{0};
    std::size_t model_bytes_{0};
    /// Who waits for memory, in order.
    std::deque<std::string> starved_{};
};

}  // namespace tinkxx::local
