#pragma once

#include <tinkxx/result.hpp>

#include "engine/common/threads.hpp"
#include "engine/model/adapter.hpp"
#include "engine/train/loss.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tinkxx::engine {

/// What came out for one datum: as many values as targets.
struct DatumOutput {
    std::vector<float> logprobs{};
    std::vector<float> elementwise_loss{};
};

struct BatchResult {
    std::vector<DatumOutput> outputs{};
    /// `loss:sum`, the plain sum over all tokens of all datums, and `num_tokens:sum`.
    std::map<std::string, double> metrics{};
};

struct TrainOptions {
    /// Datums are gathered into pieces of about this many tokens; a longer datum is a piece by
    /// itself. Part of the result: gradients are summed piece by piece.
    std::size_t piece_tokens{256};
    /// Beyond this, a piece keeps only the input of each layer and computes the rest again in the
    /// backward pass. The results are the same to the last bit.
    std::size_t activation_bytes{std::size_t{2} << 30U};
    /// Called between the layers of a piece that all threads work on together, so that a long one
    /// need not keep others waiting. It may run a sampler over the same threads, not a trainer.
    std::function<void()> pause{};
};

/// Computes losses and gradients of one model's adapters.
///
/// Not synchronised: calls take turns. Keeps its memory between calls.
class Trainer {
public:
    class Run;

    Trainer(std::shared_ptr<Model const> model, Threads& threads, TrainOptions options);
    Trainer(std::shared_ptr<Model const> model, Threads& threads);
    ~Trainer();
    Trainer(Trainer const&) = delete;
    Trainer& operator=(Trainer const&) = delete;

    /// Losses and logprobs only; null means the model without adapter. Fails with a validation
    /// error if a datum does not fit the loss or the model; then nothing was computed.
    Result<BatchResult> forward(Adapter const* adapter, std::span<Datum const> data,
                                Loss const& loss);
    /// As `forward`, and adds the gradients of the summed loss to the adapter's.
    Result<BatchResult> forward_backward(Adapter& adapter, std::span<Datum const> data,
                                         Loss const& loss);
    /// The same, to be computed some pieces at a time; other runs may take turns with it. With a
    /// `trained` adapter (then the same as `adapter`) its gradients grow. Data and adapters must
    /// outlive the run, and the adapter must not change before it is done.
    Result<Run> begin(Adapter const* adapter, Adapter* trained, std::span<Datum const> data,
                      Loss const& loss);
    /// All logits, tokens × vocabulary.
    Result<std::vector<float>> logits(Adapter const* adapter, std::span<std::int32_t const> tokens);

    /// Memory for activations, in bytes, that one thread needs for a piece of the given tokens in
    /// `sequences` sequences, with everything kept or with layers computed again. At most `threads`
    /// pieces are under way at once.
    static std::size_t activation_bytes(ModelConfig const& config, std::size_t rank,
                                        std::size_t tokens, std::size_t sequences, bool recompute);
    /// Memory held for activations now.
    [[nodiscard]] std::size_t held_bytes() const noexcept;

private:
    struct Slot;
    struct Piece {
        std::size_t first{0};
        std::size_t last{0};
        std::size_t tokens{0};
    };
    struct Call;
    class PieceRun;

    std::vector<Piece> cut(std::span<Datum const> data) const;
    void run_piece(Call const& call, Piece const& piece, Slot& slot, Threads* threads) const;

    std::shared_ptr<Model const> model_;
    Threads& threads_;
    TrainOptions options_;
    std::vector<std::unique_ptr<Slot>> slots_;
};

/// A batch under way. Dropping it leaves gradients of the pieces that are done.
class Trainer::Run {
public:
    Run(Run&&) noexcept;
    Run& operator=(Run&&) noexcept;
    ~Run();

    /// Computes up to `pieces` pieces, at least one; false once all are done. Short pieces are
    /// shared out among the threads, a long one is computed by all of them. How many are asked for
    /// at once has no influence on the result.
    bool advance(std::size_t pieces);
    [[nodiscard]] bool done() const noexcept;
    /// Tokens computed so far.
    [[nodiscard]] std::size_t tokens() const noexcept;
    /// The result, once it is done.
    BatchResult take();

private:
    friend class Trainer;
    struct State;
    explicit Run(std::unique_ptr<State> state) noexcept;

    std::unique_ptr<State> state_;
};

}  // namespace tinkxx::engine
