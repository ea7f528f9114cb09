#pragma once

#include "engine/common/aligned_floats.hpp"
#include "engine/model/pass.hpp"
#include "engine/sample/page_pool.hpp"
#include "engine/sample/sampler.hpp"

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace tinkxx::engine {

/// Pages that so many positions lie in.
inline std::size_t pages_covering(std::size_t positions) {
    return (positions + kv_block_positions - 1) / kv_block_positions;
}

/// The state behind `Sampler`: requests and tokens in sampler.cpp, who gets pages in
/// sampler_pages.cpp, what a step computes in sampler_plan.cpp, arithmetic in sampler_pass.cpp.
class Sampler::Core {
public:
    Core(std::shared_ptr<Model const> model, Threads& threads, SamplerOptions options);

    Result<RequestId> submit(SampleRequest request);
    void cancel(RequestId id);
    bool step();
    [[nodiscard]] Usage usage() const noexcept;
    [[nodiscard]] std::uint64_t computed() const noexcept { return computed_; }

private:
    struct Party;

    /// Positions whose keys and values are known, and the pages they lie in.
    struct Track {
        std::size_t length{0};
        /// Positions that have to be known before the next token can be sampled.
        std::size_t target{0};
        std::vector<PagePool::Page> pages{};
        /// The last full page in the prefix cache.
        PagePool::Node node{0};

        [[nodiscard]] bool ready() const noexcept { return length == target; }
    };

    struct Request : std::enable_shared_from_this<Request> {
        RequestId id{0};
        SampleRequest ask{};
        Party* party{nullptr};
        PagePool::Owner owner{};
        RowGroup group{};
        SampleResult result{};

        /// The prompt.
        Track track{};
        /// It has pages for the prompt, or is about to take them.
        bool holds{false};
        /// The most positions of the prompt that were ever known, and those whose logprobs are in
        /// the result: a prompt that is computed again is not scored again.
        std::size_t reached{0};
        std::size_t scored{0};
        /// The logits behind the prompt, until every sample has its first token from them.
        std::vector<float> last_logits{};
        float last_log_sum{0};

        /// Samples that have a first token, that are over, that hold pages, that gave them up, and
        /// that use pages of the prompt.
        std::size_t started{0};
        std::size_t finished{0};
        std::size_t live{0};
        std::size_t suspended{0};
        std::size_t sharing{0};

        /// Pages reserved: for the prompt, for the next sample, and for everything together.
        std::size_t prompt_pages{0};
        std::size_t reserved{0};
        std::size_t used{0};
        /// The step in which a younger request got pages while this one waited for them, or 0.
        std::uint64_t passed_over{0};
        /// Tokens that it may still sample before its pages can be taken.
        std::size_t guard{0};
        /// When one of its samples was computed last.
        std::uint64_t last_turn{0};

        bool over{false};
        bool cancelled{false};
        /// Its place among those that may have to give something up.
        std::size_t hypothesis{0};

        [[nodiscard]] bool scores() const noexcept {
            return ask.prompt_logprobs || ask.topk_prompt_logprobs > 0;
        }
        [[nodiscard]] bool prompt_known() const noexcept { return !last_logits.empty(); }
        [[nodiscard]] bool all_started() const noexcept { return started == ask.num_samples; }
    };
    using RequestPtr = std::shared_ptr<Request>;

    /// Those whose requests share what one of them gets.
    struct Party {
        /// In the order in which they came.
        std::vector<RequestPtr> requests{};
        /// Pages reserved for all of them.
        std::size_t used{0};
        /// Prompt tokens computed, to share them fairly; and how often it had its turn.
        double prefilled{0};
        std::uint64_t turns{0};
        /// When one of its samples was computed last.
        std::uint64_t last_turn{0};
        /// What it would have if some of it were given up.
        std::size_t would_use{0};
    };

    enum class Life : std::uint8_t { live, suspended, over };

    struct Sample {
        RequestPtr request{};
        std::size_t index{0};
        Track track{};
        /// The end of the text, as much as a stop string may need.
        std::string tail{};
        /// Pages reserved for it alone.
        std::size_t committed{0};
        /// It uses pages that are reserved for the prompt.
        bool shares{false};
        Life life{Life::live};
        /// Grows with each start; the newest is suspended first.
        std::uint64_t serial{0};
        /// When it was computed last: grows with each sample of each step.
        std::uint64_t last_turn{0};
        /// Its number among the samples of its request, and of its party, in a step.
        std::size_t turn{0};
    };

    enum class WorkKind : std::uint8_t { prompt, refill, decode };

    /// Rows of one step: a piece of a prompt, of what a sample had before it was suspended, or the
    /// last token of a sample.
    struct Work {
        WorkKind kind{WorkKind::prompt};
        Request* request{nullptr};
        Sample* sample{nullptr};
        std::size_t first{0};
        std::size_t count{0};
        /// What was sampled, and whether the logits are numbers.
        std::int32_t token{0};
        float logprob{0};
        bool finite{true};
        /// Its number when it was planned.
        std::size_t order{0};
    };

    /// Positions that have to be computed before a token can be sampled.
    struct Fill {
        Request* request{nullptr};
        Sample* sample{nullptr};
        std::size_t planned{0};
        /// The cache was asked.
        bool looked{false};
        /// Another one computes the same page in this step.
        bool waits{false};

        [[nodiscard]] Track& track() const noexcept;
        [[nodiscard]] std::size_t left() const noexcept;
        [[nodiscard]] std::pair<RequestId, std::size_t> age() const noexcept;
    };

    /// Works that one thread computes; memory is kept from step to step.
    struct Part {
        std::size_t begin{0};
        std::size_t end{0};
        std::vector<std::int32_t> tokens{};
        std::vector<std::int32_t> positions{};
        std::vector<Segment> segments{};
        std::vector<RowGroup> groups{};
        std::vector<float*> pages{};
        GrowingBuffer memory{};
        /// Room for the logits of some rows.
        float* normed{nullptr};
        float* logits{nullptr};
        float* lora{nullptr};
    };

    struct Event {
        RequestPtr request{};
        std::function<void()> call{};
    };

    /// A row whose logits are wanted.
    struct LogitRow {
        Work* work{nullptr};
        std::size_t row{0};
        std::size_t position{0};
    };

    // sampler.cpp
    Result<void> check(SampleRequest const& ask) const;
    void finish_work();
    void start_sample(Request& request);
    void accept_token(Sample& sample, std::int32_t token, float logprob);
    [[nodiscard]] bool ends_text(Sample& sample, std::int32_t token) const;
    void advance(Request& request, Sample* sample, std::size_t count);
    void end_sample(Sample& sample, StopCause cause);
    void finish(Request& request, Result<SampleResult> result);
    void dispatch();
    void forget_ended();
    [[nodiscard]] static std::int32_t token_at(Request const& request, Sample const* sample,
                                               std::size_t position) noexcept;

    // sampler_pages.cpp
    /// Whether fairness decides what may be taken, or a request that waited for too long.
    enum class Force : std::uint8_t { no, due, stuck };
    struct Hypothesis;
    class Wanting;

    void reserve(Request& request, std::size_t pages) noexcept;
    void take_back(Request& request, std::size_t pages) noexcept;
    [[nodiscard]] static std::size_t prompt_pages(Request const& request) noexcept;
    [[nodiscard]] static std::size_t all_pages(Request const& request) noexcept;
    [[nodiscard]] static std::size_t own_pages(Request const& request) noexcept;
    [[nodiscard]] static std::optional<std::size_t> wanted(Request const& request) noexcept;
    void share_pages();
    /// Gives pages to the oldest that waits, whoever holds them; false if nobody waits.
    bool unblock();
    [[nodiscard]] Request* oldest_due() const noexcept;
    bool give(Request& request, Force force);
    bool make_room(Request& request, std::size_t pages, Force force);
    void give_up_newest(Request& request);
    void resume(Request& request);
    void suspend(Sample& sample);
    void park(Request& request);
    void drop_pages(Track& track);
    void settle(Request& request) noexcept;
    void release(Sample& sample);
    void release(Request& request);

    // sampler_plan.cpp
    void plan();
    void plan_decode();
    void choose_ready(std::size_t rows);
    void plan_prefill();
    void plan_short();
    void plan_party(std::span<Fill> fills, std::size_t tokens);
    void plan_fill(Fill& fill, std::size_t tokens);
    void use_cache(Fill const& fill);
    /// What a token costs, as a multiple of one near the beginning of a text.
    [[nodiscard]] double cost(std::size_t position) const noexcept;

    // sampler_pass.cpp
    void plan_parts();
    void compute();
    void run_part(Part& part, unsigned slot, Threads* threads);
    void fill_part(Part& part);
    void part_logits(Part& part, float const* x, unsigned slot, Threads* threads);
    void take_logits(LogitRow const& row, std::span<float const> logits, TokenFilter& filter) const;

    std::shared_ptr<Model const> model_;
    Threads& threads_;
    SamplerOptions options_;
    PagePool pool_;
    /// Weights this large are shared by the threads of a step instead of read by each.
    bool large_{false};
    /// What attention to one position costs, as a part of the products of a token.
    double attention_cost_{0};
    /// Pages that requests hold or may still need: never more than there are.
    std::size_t committed_{0};
    RequestId last_id_{0};
    std::uint64_t last_serial_{0};
    std::uint64_t steps_{0};
    std::uint64_t turns_{0};
    /// When a request last got pages because it had waited for too long.
    std::uint64_t last_due_{0};
    /// In this step, at what others would have to give up.
    std::array<int, 2> looks_left_{};
    /// A prompt has become known in this step, so that its samples can begin.
    bool known_{false};
    std::uint64_t computed_{0};
    std::shared_ptr<RopeTables const> rope_{};

    std::map<std::string, std::unique_ptr<Party>, std::less<>> parties_{};
    std::vector<std::unique_ptr<Sample>> samples_{};
    /// Something is over that these lists still have.
    bool ended_{false};
    /// Something changed in this step, even if nothing is computed.
    bool moved_{false};

    std::vector<Work> work_{};
    std::vector<Sample*> ready_{};
    std::vector<Fill> fills_{};
    /// Full pages that this step computes.
    std::set<std::tuple<PagePool::Owner, PagePool::Node, std::vector<std::int32_t>>> computing_{};
    /// What remains of this step for prompts, in tokens and in their cost; and what the party that
    /// was first in the last one had got before it.
    std::size_t tokens_left_{0};
    double cost_left_{0};
    double prefill_clock_{0};

    std::vector<std::unique_ptr<Part>> parts_{};
    std::size_t part_count_{0};
    std::vector<Event> events_{};
    std::vector<Event> dispatching_{};
    /// One for each thread.
    std::vector<TokenFilter> filters_{};
    std::vector<std::vector<LogitRow>> logit_rows_{};
};

}  // namespace tinkxx::engine
