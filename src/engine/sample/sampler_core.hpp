#pragma once

#include "engine/model/pass.hpp"
#include "engine/sample/page_pool.hpp"
#include "engine/sample/sampler.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace tinkxx::engine {

/// A block of floats that only grows.
class GrowingBuffer {
public:
    float* reserve(std::size_t floats) {
        if (floats > size_) {
            memory_.reset();
            memory_.reset(static_cast<float*>(
                ::operator new[](floats * sizeof(float), std::align_val_t{64})));
            size_ = floats;
        }
        return memory_.get();
    }

private:
    struct Free {
        void operator()(float* memory) const noexcept {
            ::operator delete[](memory, std::align_val_t{64});
        }
    };
    std::unique_ptr<float[], Free> memory_{};
    std::size_t size_{0};
};

/// The state behind `Sampler`: planning in sampler.cpp, arithmetic in sampler_pass.cpp.
class Sampler::Core {
public:
    Core(std::shared_ptr<Model const> model, Threads& threads, SamplerOptions options);

    Result<RequestId> submit(SampleRequest request);
    void cancel(RequestId id);
    bool step();
    [[nodiscard]] Usage usage() const noexcept;

private:
    struct Request {
        RequestId id{0};
        SampleRequest ask{};
        PagePool::Owner owner{};
        RowGroup group{};
        /// Prompt positions whose keys and values are known, and the pages they lie in.
        std::size_t computed{0};
        std::vector<PagePool::Page> pages{};
        /// The last full page in the prefix cache.
        PagePool::Node node{0};
        /// The logits behind the prompt, until every sample has drawn its first token from them.
        std::vector<float> last_logits{};
        float last_log_sum{0};
        std::size_t started{0};
        std::size_t finished{0};
        /// Pages reserved for the prompt and for a first sample that has not started.
        std::size_t committed{0};
        SampleResult result{};
        bool over{false};
        bool cancelled{false};
        /// The step computes a part of what is left of the prompt.
        bool cut_off{false};

        [[nodiscard]] bool scores() const noexcept {
            return ask.prompt_logprobs || ask.topk_prompt_logprobs > 0;
        }
        [[nodiscard]] bool prompt_done() const noexcept { return computed == ask.prompt.size(); }
    };
    using RequestPtr = std::shared_ptr<Request>;

    struct Sample {
        RequestPtr request{};
        std::size_t index{0};
        std::vector<PagePool::Page> pages{};
        PagePool::Node node{0};
        /// Positions whose keys and values are known.
        std::size_t length{0};
        /// The end of the text, as much as a stop string may need.
        std::string tail{};
        std::size_t committed{0};
        bool over{false};
    };

    /// Rows of one step: a piece of a prompt, or the last token of a sample.
    struct Work {
        Request* request{nullptr};
        Sample* sample{nullptr};
        std::size_t first{0};
        std::size_t count{0};
        /// What was drawn for the sample, and whether its logits are numbers.
        std::int32_t token{0};
        float logprob{0};
        bool finite{true};
        /// Its number when it was planned.
        std::size_t order{0};
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

    Result<void> check(SampleRequest const& ask) const;
    /// Pages that the next sample needs beside those of the prompt.
    [[nodiscard]] static std::size_t own_pages(Request const& request) noexcept;
    void admit();
    void start_samples();
    void start_sample(RequestPtr const& request);
    void use_cache(Request& request);
    void plan_decode();
    void plan_prefill();
    void plan_parts();
    void compute();
    void run_part(Part& part, unsigned slot, Threads* threads);
    void fill_part(Part& part);
    void part_logits(Part& part, float const* x, unsigned slot, Threads* threads);
    void take_logits(LogitRow const& row, std::span<float const> logits, TokenFilter& filter) const;
    void finish_work();
    void accept_token(Sample& sample, std::int32_t token, float logprob);
    [[nodiscard]] bool ends_text(Sample& sample, std::int32_t token) const;
    void page_filled(Sample& sample);
    void end_sample(Sample& sample, StopCause cause);
    void release(Sample& sample);
    void finish(Request& request, Result<SampleResult> result);
    void release(Request& request);
    void dispatch();
    [[nodiscard]] RequestPtr shared(Request const& request) const;

    std::shared_ptr<Model const> model_;
    Threads& threads_;
    SamplerOptions options_;
    PagePool pool_;
    /// Weights this large are shared by the threads of a step instead of read by each.
    bool large_{false};
    /// Pages that admitted requests hold or may still need.
    std::size_t committed_{0};
    RequestId last_id_{0};
    std::uint64_t computed_{0};
    std::shared_ptr<RopeTables const> rope_{};

    std::deque<RequestPtr> waiting_{};
    std::vector<RequestPtr> active_{};
    std::vector<std::unique_ptr<Sample>> samples_{};
    std::vector<Work> work_{};
    std::vector<std::unique_ptr<Part>> parts_{};
    std::size_t part_count_{0};
    std::vector<Event> events_{};
    std::vector<Event> dispatching_{};
    /// One for each thread.
    std::vector<TokenFilter> filters_{};
    std::vector<std::vector<LogitRow>> logit_rows_{};
};

}  // namespace tinkxx::engine
