#include "engine/train/trainer.hpp"

#include "engine/common/aligned_floats.hpp"
#include "engine/common/failure.hpp"
#include "engine/kernels/elementwise.hpp"
#include "engine/train/backward.hpp"

#include <atomic>
#include <cstring>
#include <optional>

namespace tinkxx::engine {

namespace {

enum class PassKind : std::uint8_t { forward, keep, recompute };

/// Logits are computed some rows at a time, so that a large vocabulary does not need memory for
/// all rows at once.
std::size_t logit_rows(ModelConfig const& config, std::size_t rows) {
    constexpr std::size_t floats = std::size_t{4} << 20U;
    return std::min(rows, std::clamp<std::size_t>(floats / wide(config.vocab_size), 8, 256));
}

/// All buffers of one piece, and how they lie in one block of memory.
struct PieceBuffers {
    std::vector<LayerBuffers> layers{};
    PassScratch scratch{};
    BackwardScratch backward{};
    float* x{nullptr};  ///< output of the last layer
    float* normed{nullptr};
    float* inverse_rms{nullptr};
    float* head_lora{nullptr};
    float* logits{nullptr};
    float* pages{nullptr};
    KvLayout kv{};

    void carve(Carver& carver, ModelConfig const& config, std::size_t rank, std::size_t rows,
               std::size_t page_count, PassKind kind) {
        auto const hidden = rows * wide(config.hidden_size);
        auto const layer_count = wide(config.layers);
        layers.clear();
        if (kind == PassKind::keep) {
            for (std::size_t i = 0; i < layer_count; ++i) {
                layers.push_back(carve_layer(carver, config, rows, rank, Keep::for_backward));
            }
            x = carver.take(hidden);
        } else {
            auto const shared =
                carve_layer(carver, config, rows, rank,
                            kind == PassKind::forward ? Keep::nothing : Keep::for_backward);
            layers.assign(layer_count, shared);
            x = shared.x;
            if (kind == PassKind::recompute) {
                for (std::size_t i = 1; i < layer_count; ++i) layers[i].x = carver.take(hidden);
                x = carver.take(hidden);
            }
        }
        scratch = carve_scratch(carver, config, rows);
        normed = carver.take(hidden);
        inverse_rms = carver.take(rows);
        head_lora = carver.take(rows * rank);
        logits = carver.take(logit_rows(config, rows) * wide(config.vocab_size));
        kv = {.layers = kind == PassKind::keep ? layer_count : 1,
              .kv_heads = wide(config.kv_heads),
              .head_dim = wide(config.head_dim)};
        pages = carver.take(page_count * kv.page_floats());
        if (kind != PassKind::forward) backward = carve_backward(carver, config, rows, rank);
    }
};

/// `buffers` only lends its memory.
std::size_t piece_floats(PieceBuffers& buffers, ModelConfig const& config, std::size_t rank,
                         std::size_t rows, std::size_t pages, PassKind kind) {
    Carver counter{nullptr};
    buffers.carve(counter, config, rank, rows, pages, kind);
    return counter.used();
}

std::size_t pages_of(std::size_t tokens) {
    return (tokens + kv_block_positions - 1) / kv_block_positions;
}

}  // namespace

/// Memory of one thread.
struct Trainer::Slot {
    GrowingBuffer memory{};
    PieceBuffers buffers{};
    std::vector<std::int32_t> tokens{};
    std::vector<std::int32_t> positions{};
    std::vector<Segment> segments{};
    std::vector<float*> pages{};
    /// Which target values of which datum a row is measured against.
    struct RowTarget {
        std::size_t datum{0};
        std::size_t token{0};
    };
    std::vector<RowTarget> targets{};
    /// Gradients of the piece in hand; kept between calls of the same shape.
    std::optional<LoraWeights> gradients{};
    LoraConfig gradients_config{};
    std::vector<PackedMatrix*> gradient_list{};
};

/// What all pieces of one call share.
struct Trainer::Call {
    std::span<Datum const> data{};
    Loss loss{};
    RowGroup group{};
    std::size_t rank{0};
    bool backward{false};
    LoraConfig lora{};
    Weights* full{nullptr};
    RopeTables const* rope{nullptr};
    /// One for each datum, sized already.
    std::vector<DatumOutput>* outputs{nullptr};
    /// If set, logits go here instead of into a loss.
    float* logits{nullptr};
};

Trainer::Trainer(std::shared_ptr<Model const> model, Threads& threads, TrainOptions options)
    : model_{std::move(model)}, threads_{threads}, options_{std::move(options)} {
    for (unsigned i = 0; i < threads.count(); ++i) slots_.push_back(std::make_unique<Slot>());
}

Trainer::Trainer(std::shared_ptr<Model const> model, Threads& threads)
    : Trainer{std::move(model), threads, TrainOptions{}} {}

Trainer::~Trainer() = default;

std::size_t Trainer::activation_bytes(ModelConfig const& config, std::size_t rank,
                                      std::size_t tokens, std::size_t sequences, bool recompute) {
    // A sequence ends in a page that is not full: at most one page more for each.
    auto const pages = tokens / kv_block_positions + sequences;
    PieceBuffers buffers;
    return sizeof(float) * piece_floats(buffers, config, rank, tokens, pages,
                                        recompute ? PassKind::recompute : PassKind::keep);
}

std::size_t Trainer::held_bytes() const noexcept {
    std::size_t total = 0;
    for (auto const& slot : slots_) total += slot->memory.size() * sizeof(float);
    return total;
}

std::vector<Trainer::Piece> Trainer::cut(std::span<Datum const> data) const {
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < data.size(); ++i) {
        auto const tokens = data[i].tokens.size();
        if (pieces.empty() || pieces.back().tokens + tokens > options_.piece_tokens) {
            pieces.push_back({.first = i, .last = i, .tokens = 0});
        }
        pieces.back().last = i + 1;
        pieces.back().tokens += tokens;
    }
    return pieces;
}

/// One piece of a batch on its way through the model and back.
class Trainer::PieceRun {
public:
    PieceRun(Trainer const& trainer, Call const& call, Piece const& piece, Slot& slot,
             Threads* threads)
        : config_{trainer.model_->config()},
          options_{trainer.options_},
          call_{call},
          slot_{slot},
          threads_{threads},
          rows_{piece.tokens},
          layers_{wide(config_.layers)},
          hidden_{wide(config_.hidden_size)},
          vocab_{wide(config_.vocab_size)},
          group_{call.group} {
        group_.row = 0;
        group_.rows = rows_;
        take_memory(take_rows(piece));
        batch_ = {.tokens = slot.tokens,
                  .positions = slot.positions,
                  .segments = slot.segments,
                  .groups = {&group_, 1},
                  .kv = buffers_.kv,
                  .rope = call.rope};
        target_ = {.lora = call.full == nullptr && call.backward ? &*slot.gradients : nullptr,
                   .full = call.full};
    }
    PieceRun(PieceRun const&) = delete;
    PieceRun& operator=(PieceRun const&) = delete;

    void run() {
        forward();
        auto const chunk = logit_rows(config_, rows_);
        for (std::size_t begin = 0; begin < rows_; begin += chunk) {
            pause();
            head(begin, std::min(chunk, rows_ - begin));
        }
        if (call_.backward && below_) backward();
    }

private:
    /// Lays the tokens of all data out in rows; returns how many pages they need.
    std::size_t take_rows(Piece const& piece);
    void take_memory(std::size_t page_count);
    void forward();
    /// Logits of some rows; and with them what they are for.
    void head(std::size_t begin, std::size_t count);
    /// Loss of one row, whose logits become their gradients.
    void row_loss(std::size_t index, float* row) const;
    void head_backward(ConstMatrixView normed, MatrixView logits, float* h, std::size_t begin);
    void backward();

    void pause() const {
        if (threads_ != nullptr && options_.pause) options_.pause();
    }
    [[nodiscard]] std::size_t kv_layer(std::size_t layer) const {
        return kind_ == PassKind::keep ? layer : std::size_t{0};
    }
    [[nodiscard]] float* output_of(std::size_t layer) const {
        return layer + 1 < layers_ ? buffers_.layers[layer + 1].x : buffers_.x;
    }

    ModelConfig const& config_;
    TrainOptions const& options_;
    Call const& call_;
    Slot& slot_;
    Threads* threads_;
    std::size_t rows_;
    std::size_t layers_;
    std::size_t hidden_;
    std::size_t vocab_;
    RowGroup group_;
    PieceBuffers& buffers_{slot_.buffers};
    PassKind kind_{call_.backward ? PassKind::keep : PassKind::forward};
    /// Whether gradients are wanted of anything below the head.
    bool below_{call_.full != nullptr || call_.lora.train_attn || call_.lora.train_mlp};
    Batch batch_{};
    GradientTarget target_{};
};

std::size_t Trainer::PieceRun::take_rows(Piece const& piece) {
    slot_.tokens.clear();
    slot_.positions.clear();
    slot_.segments.clear();
    slot_.targets.clear();
    std::size_t page_count = 0;
    for (auto i = piece.first; i < piece.last; ++i) {
        auto const& tokens = call_.data[i].tokens;
        slot_.segments.push_back({.row = slot_.tokens.size(), .tokens = tokens.size()});
        for (std::size_t t = 0; t < tokens.size(); ++t) {
            slot_.positions.push_back(static_cast<std::int32_t>(t));
            slot_.targets.push_back({.datum = i, .token = t});
        }
        slot_.tokens.insert(slot_.tokens.end(), tokens.begin(), tokens.end());
        page_count += pages_of(tokens.size());
    }
    return page_count;
}

void Trainer::PieceRun::take_memory(std::size_t page_count) {
    auto const floats = [&] {
        return piece_floats(buffers_, config_, call_.rank, rows_, page_count, kind_);
    };
    if (kind_ == PassKind::keep && floats() * sizeof(float) > options_.activation_bytes) {
        kind_ = PassKind::recompute;
    }
    Carver carver{slot_.memory.reserve(floats())};
    buffers_.carve(carver, config_, call_.rank, rows_, page_count, kind_);
    auto const page_floats = buffers_.kv.page_floats();
    // Attention multiplies unused positions by 0; stale memory could hold NaN.
    std::memset(buffers_.pages, 0, page_count * page_floats * sizeof(float));
    slot_.pages.clear();
    for (std::size_t i = 0; i < page_count; ++i) {
        slot_.pages.push_back(buffers_.pages + i * page_floats);
    }
    std::size_t page = 0;
    for (auto& segment : slot_.segments) {
        segment.pages = slot_.pages.data() + page;
        page += pages_of(segment.tokens);
    }
}

void Trainer::PieceRun::forward() {
    embed(config_, batch_, buffers_.layers.front().x, threads_);
    for (std::size_t i = 0; i < layers_; ++i) {
        pause();
        layer_forward(config_, batch_, i, kv_layer(i), buffers_.layers[i], buffers_.scratch,
                      output_of(i), threads_);
    }
    final_norm(config_, batch_, buffers_.x, buffers_.normed, buffers_.inverse_rms, threads_);
}

void Trainer::PieceRun::head(std::size_t begin, std::size_t count) {
    ConstMatrixView const normed{buffers_.normed + begin * hidden_, count, hidden_};
    MatrixView const logits{buffers_.logits, count, vocab_};
    float* const h = buffers_.head_lora + begin * call_.rank;
    unembed(group_, normed, logits, h, threads_);
    if (call_.logits != nullptr) {
        copy(call_.logits + begin * vocab_, logits.data, count * vocab_);
        return;
    }
    by_rows(threads_, count, [&](std::size_t first, std::size_t last) {
        for (auto r = first; r < last; ++r) row_loss(begin + r, logits.row(r));
    });
    if (call_.backward) head_backward(normed, logits, h, begin);
}

void Trainer::PieceRun::row_loss(std::size_t index, float* row) const {
    auto const [number, token] = slot_.targets[index];
    auto const& datum = call_.data[number];
    auto& output = (*call_.outputs)[number];
    SoftmaxState state;
    softmax_update(state, row, vocab_);
    auto const log_sum = state.log_sum_exp();
    auto const per_token = datum.targets_per_token;
    double slopes = 0.0;
    for (auto j = token * per_token; j < (token + 1) * per_token; ++j) {
        auto const p = row[datum.targets[j]] - log_sum;
        auto const [value, slope] = token_loss(call_.loss, datum, j, static_cast<double>(p));
        output.logprobs[j] = p;
        output.elementwise_loss[j] = static_cast<float>(value);
        slopes += slope;
    }
    if (!call_.backward) return;
    // d p(target) / d logits = onehot - softmax
    softmax_apply(row, row, vocab_, log_sum, static_cast<float>(-slopes));
    for (auto j = token * per_token; j < (token + 1) * per_token; ++j) {
        auto const p = static_cast<double>(output.logprobs[j]);
        row[datum.targets[j]] += static_cast<float>(token_loss(call_.loss, datum, j, p).slope);
    }
}

void Trainer::PieceRun::head_backward(ConstMatrixView normed, MatrixView logits, float* h,
                                      std::size_t begin) {
    LinearBackward linear{.weight = &group_.weights->unembedding()};
    if (call_.full != nullptr) linear.dweight = &call_.full->unembedding();
    if (group_.lora != nullptr && !group_.lora->head.empty()) {
        linear.lora = &group_.lora->head;
        linear.dlora = &target_.lora->head;
        linear.scale = group_.scale;
    }
    auto& back = buffers_.backward;
    MatrixView const dnormed{back.dnormed + begin * hidden_, logits.rows, hidden_};
    linear_backward(linear, logits, normed, h, back.dlora, below_ ? dnormed : MatrixView{},
                    Write::set, threads_);
}

void Trainer::PieceRun::backward() {
    auto& back = buffers_.backward;
    auto* const full = call_.full;
    norm_backward({back.dx, rows_, hidden_}, full == nullptr ? nullptr : &full->norm,
                  {back.dnormed, rows_, hidden_}, {buffers_.x, rows_, hidden_},
                  group_.weights->norm, buffers_.inverse_rms, Write::set, threads_);
    for (auto i = layers_; i-- > 0;) {
        pause();
        if (kind_ == PassKind::recompute) {
            // The output goes where it will not be missed.
            layer_forward(config_, batch_, i, 0, buffers_.layers[i], buffers_.scratch, back.dnormed,
                          threads_);
        }
        auto const pass_on = i > 0 || full != nullptr ? PassOn::yes : PassOn::no;
        layer_backward(config_, batch_, i, kv_layer(i), buffers_.layers[i], buffers_.scratch, back,
                       target_, pass_on, threads_);
    }
    if (full != nullptr) embed_backward(batch_, {back.dx, rows_, hidden_}, full->embedding);
}

void Trainer::run_piece(Call const& call, Piece const& piece, Slot& slot, Threads* threads) const {
    PieceRun{*this, call, piece, slot, threads}.run();
}

struct Trainer::Run::State {
    State(Trainer& owner, Call const& begun) : trainer{owner}, call{begun} {}

    Trainer& trainer;
    Call call;
    std::shared_ptr<RopeTables const> rope{};
    BatchResult result{};
    /// Where the gradients of LoRA matrices are summed; empty otherwise.
    std::vector<PackedMatrix*> sums{};
    std::vector<Piece> pieces{};
    std::size_t next{0};
    std::size_t tokens{0};

    void one(std::size_t index, std::atomic<std::size_t>& added, unsigned number, Threads* inner);
};

Trainer::Run::Run(std::unique_ptr<State> state) noexcept : state_{std::move(state)} {}
Trainer::Run::Run(Run&&) noexcept = default;
Trainer::Run& Trainer::Run::operator=(Run&&) noexcept = default;
Trainer::Run::~Run() = default;

Result<Trainer::Run> Trainer::begin(Adapter const* adapter, Adapter* trained,
                                    std::span<Datum const> data, Loss const& loss) {
    auto const& config = model_->config();
    if (data.empty()) return invalid("a batch needs at least one datum", "data");
    if (adapter != nullptr && &adapter->model() != model_.get()) {
        return invalid("the adapter belongs to another model", "model_id");
    }
    std::size_t longest = 0;
    for (std::size_t i = 0; i < data.size(); ++i) {
        auto const good = check(data[i], loss, config.vocab_size, config.max_positions, i);
        if (!good) return good.error();
        longest = std::max(longest, data[i].tokens.size());
    }
    auto state = std::make_unique<Run::State>(
        *this, Call{.data = data,
                    .loss = loss,
                    .group = row_group(*model_, adapter),
                    .rank = adapter == nullptr ? 0 : wide(adapter->config().rank),
                    .backward = trained != nullptr});
    auto& outputs = state->result.outputs;
    outputs.resize(data.size());
    for (std::size_t i = 0; i < data.size(); ++i) {
        outputs[i].logprobs.resize(data[i].targets.size());
        outputs[i].elementwise_loss.resize(data[i].targets.size());
    }
    state->rope = model_->rope_tables(longest);
    auto& call = state->call;
    call.rope = state->rope.get();
    call.outputs = &outputs;
    if (adapter != nullptr) call.lora = adapter->config();
    if (trained != nullptr) {
        call.full = std::get_if<Weights>(&trained->gradients());
        if (auto* const sums = std::get_if<LoraWeights>(&trained->gradients())) {
            state->sums = all_matrices(*sums);
        }
    }
    state->pieces = cut(data);
    return Run{std::move(state)};
}

void Trainer::Run::State::one(std::size_t index, std::atomic<std::size_t>& added, unsigned number,
                              Threads* inner) {
    auto& slot = *trainer.slots_[number];
    if (!sums.empty() && (!slot.gradients || slot.gradients_config != call.lora)) {
        slot.gradients = zero_lora(trainer.model_->config(), call.lora);
        slot.gradients_config = call.lora;
        slot.gradient_list = all_matrices(*slot.gradients);
    }
    trainer.run_piece(call, pieces[index], slot, inner);
    if (sums.empty()) return;
    // Sums are formed in the order of the pieces. Pieces begin in order, so the one before is done
    // or under way on another thread: waiting ends.
    for (auto done = added.load(); done != index; done = added.load()) added.wait(done);
    auto const& own = slot.gradient_list;
    for (std::size_t i = 0; i < own.size(); ++i) {
        auto const values = own[i]->values();
        copy(sums[i]->values().data(), values.data(), values.size(), Write::add);
        std::ranges::fill(values, 0.0F);
    }
    added.store(index + 1);
    added.notify_all();
}

bool Trainer::Run::advance(std::size_t pieces) {
    auto& state = *state_;
    auto& threads = state.trainer.threads_;
    auto const first = state.next;
    auto const end = std::min(state.pieces.size(), first + std::max<std::size_t>(pieces, 1));
    // Full gradients are too large for a copy per thread: pieces one by one, threads inside them.
    bool const apart = state.call.full == nullptr && threads.count() > 1;
    auto last = first;
    while (apart && last < end &&
           state.pieces[last].tokens <= state.trainer.options_.piece_tokens) {
        ++last;
    }
    std::atomic<std::size_t> added{first};
    if (last - first >= threads.count()) {
        std::atomic<std::size_t> next{first};
        threads.run(last - first, [&](std::size_t, unsigned number) {
            state.one(next.fetch_add(1), added, number, nullptr);
        });
    } else {
        last = std::min(first + 1, end);
        if (last > first) state.one(first, added, 0, &threads);
    }
    for (auto i = first; i < last; ++i) state.tokens += state.pieces[i].tokens;
    state.next = last;
    return !done();
}

bool Trainer::Run::done() const noexcept { return state_->next == state_->pieces.size(); }
std::size_t Trainer::Run::tokens() const noexcept { return state_->tokens; }

BatchResult Trainer::Run::take() {
    auto& result = state_->result;
    double total = 0.0;
    double tokens = 0.0;
    for (std::size_t i = 0; i < result.outputs.size(); ++i) {
        for (auto const value : result.outputs[i].elementwise_loss) {
            total += static_cast<double>(value);
        }
        tokens += static_cast<double>(state_->call.data[i].tokens.size());
    }
    result.metrics = {{"loss:sum", total}, {"num_tokens:sum", tokens}};
    return std::move(result);
}

Result<BatchResult> Trainer::forward(Adapter const* adapter, std::span<Datum const> data,
                                     Loss const& loss) {
    auto run = begin(adapter, nullptr, data, loss);
    if (!run) return run.error();
    while (run->advance(data.size())) {
    }
    return run->take();
}

Result<BatchResult> Trainer::forward_backward(Adapter& adapter, std::span<Datum const> data,
                                              Loss const& loss) {
    auto run = begin(&adapter, &adapter, data, loss);
    if (!run) return run.error();
    while (run->advance(data.size())) {
    }
    return run->take();
}

Result<std::vector<float>> Trainer::logits(Adapter const* adapter,
                                           std::span<std::int32_t const> tokens) {
    auto const& config = model_->config();
    Datum datum{.tokens = {tokens.begin(), tokens.end()},
                .targets = std::vector<std::int32_t>(tokens.size(), 0),
                .weights = std::vector<float>(tokens.size(), 0.0F)};
    Loss const loss{};
    if (auto const good = check(datum, loss, config.vocab_size, config.max_positions, 0); !good) {
        return good.error();
    }
    std::vector<float> result(tokens.size() * wide(config.vocab_size));
    auto const rope = model_->rope_tables(tokens.size());
    Call const call{.data = {&datum, 1},
                    .loss = loss,
                    .group = row_group(*model_, adapter),
                    .rank = adapter == nullptr ? 0 : wide(adapter->config().rank),
                    .rope = rope.get(),
                    .logits = result.data()};
    run_piece(call, {.first = 0, .last = 1, .tokens = tokens.size()}, *slots_.front(), &threads_);
    return result;
}

}  // namespace tinkxx::engine
