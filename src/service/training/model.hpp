#pragma once

#include <tinkxx/types/training.hpp>

#include "service/core/client_core.hpp"
#include "service/core/encoding_choice.hpp"
#include "service/passes/chunking.hpp"
#include "service/passes/turns.hpp"
#include "service/results/queue_state_reporter.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace tinkxx::service {

/// A model that is being trained: its id, the order of its requests, and how they are made. Made
/// on the loop once the session is ready; what does not say otherwise may be read by any thread.
class TrainingModel final : public std::enable_shared_from_this<TrainingModel> {
public:
    TrainingModel(std::shared_ptr<ClientCore> core, std::string id,
                  std::optional<OptimizerConfig> optimizer);

    [[nodiscard]] ClientCore& core() const noexcept { return *core_; }
    [[nodiscard]] std::shared_ptr<ClientCore> const& core_handle() const noexcept { return core_; }
    [[nodiscard]] Scheduler& scheduler() const noexcept { return core_->scheduler(); }
    [[nodiscard]] std::string const& id() const noexcept { return id_; }
    /// Empty if it is not known.
    [[nodiscard]] std::optional<OptimizerConfig> const& optimizer() const noexcept {
        return optimizer_;
    }
    [[nodiscard]] ChunkCaps caps() const noexcept { return caps_; }
    [[nodiscard]] bool parallel() const noexcept { return parallel_; }
    [[nodiscard]] wire::Compression compression() const noexcept { return compression_; }
    [[nodiscard]] std::shared_ptr<EncodingChoice> const& encodings() const noexcept {
        return encodings_;
    }

    /// The next places in the line of the model (R-TRAIN-10).
    [[nodiscard]] Ticket take(std::size_t submits,
                              Ticket::Numbers numbers = Ticket::Numbers::yes) const {
        return Ticket{desk_, desk_->take(static_cast<std::int64_t>(submits)), numbers};
    }
    /// For those who look on.
    [[nodiscard]] TurnDesk& desk() const noexcept { return *desk_; }
    /// True for the first who asks.
    [[nodiscard]] bool first_deprecated_load() noexcept { return !load_warned_.exchange(true); }

    /// Which tokenizer it has, once somebody found out.
    [[nodiscard]] std::optional<TokenizerId> tokenizer() const {
        std::scoped_lock const lock{tokenizer_mutex_};
        return tokenizer_;
    }
    void set_tokenizer(TokenizerId id) {
        std::scoped_lock const lock{tokenizer_mutex_};
        tokenizer_ = std::move(id);
    }

    /// Loop thread only.
    [[nodiscard]] QueueStateReporter& reporter() noexcept { return reporter_; }

private:
    std::shared_ptr<ClientCore> const core_;
    std::string const id_;
    std::optional<OptimizerConfig> const optimizer_;
    ChunkCaps const caps_;
    bool const parallel_;
    wire::Compression const compression_;
    std::shared_ptr<EncodingChoice> const encodings_;
    std::shared_ptr<TurnDesk> const desk_;
    QueueStateReporter reporter_{training_queue};
    std::atomic<bool> load_warned_{false};
    std::mutex mutable tokenizer_mutex_{};
    std::optional<TokenizerId> tokenizer_{};  // guarded by tokenizer_mutex_
};

}  // namespace tinkxx::service
