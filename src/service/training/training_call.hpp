#pragma once

#include <tinkxx/call_options.hpp>
#include <tinkxx/future.hpp>

#include "service/calls/promise_call.hpp"
#include "service/passes/pass.hpp"
#include "service/results/queue_state_reporter.hpp"
#include "service/training/model.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::service {

/// A call that submits and waits for what was promised, in one pass or several.
class TrainingCall : public SessionCall, private Pass::Listener {
public:
    /// Longer results are read where they do not keep the loop from others.
    static constexpr std::size_t decode_on_loop_bytes = std::size_t{64} * 1024;

protected:
    TrainingCall(std::shared_ptr<ClientCore> const& core, std::string name, CallOptions call);

    /// Begins a pass; none may be under way. Loop thread only.
    void start(PassPlan plan);
    /// The pass is over.
    virtual void on_pass(std::vector<RetrievedResult> results) = 0;
    virtual void on_refusal(Error const& error) { fail(named(error)); }
    /// Whose queue it waits in.
    virtual QueueStateReporter& reporter() = 0;
    [[nodiscard]] virtual std::string const& owner() const = 0;

    /// Gives `results` to `work` and what that makes to `done`, on the loop, if the call is still
    /// under way; the work itself is done there too if it is small.
    template <class Made>
    void read(std::vector<RetrievedResult> results,
              std::function<Made(std::vector<RetrievedResult> const&)> work,
              std::function<void(Made)> done);
    /// Tells telemetry of a result that could not be read, and fails.
    void unreadable(Error const& error);
    /// As `stage`, but for what the pass is doing.
    void set_stage(std::optional<Stage> stage, std::string why = {});
    [[nodiscard]] CallOptions const& call() const noexcept { return call_; }

    void drop() noexcept override { pass_.cancel(); }
    void on_deadline(Error const& error) noexcept override { pass_.out_of_time(error); }
    Stage stage() const noexcept override { return own_ ? *own_ : pass_.stage(); }
    void describe(OperationStatus& status, TimePoint now) const override;

private:
    void on_results(std::vector<RetrievedResult> results) override;
    void on_error(Error error) override;
    void on_queue_state(Submission const& of, QueueState state, std::string const& reason) override;
    void on_standing() override { look(); }

    CallOptions const call_;
    Pass pass_;
    std::optional<Stage> own_{};
    std::string own_why_{};
    std::optional<QueueStanding> queue_{};
    /// Of the last results, for those who cannot read them.
    std::string result_type_{};
    bool result_protobuf_{false};
};

template <class Made>
void TrainingCall::read(std::vector<RetrievedResult> results,
                        std::function<Made(std::vector<RetrievedResult> const&)> work,
                        std::function<void(Made)> done) {
    std::size_t bytes = 0;
    for (auto const& each : results) bytes += each.size;
    if (bytes <= decode_on_loop_bytes) return done(work(results));
    set_stage(Stage::decoding, "its long result is being read");
    auto self = shared_from_this();
    core().http().runtime().run_callback(
        [this, self, work = std::move(work), done = std::move(done),
         results = std::move(results)]() mutable {
            auto const read = std::move(results);  // which is long, and gone when this returns
            auto made = std::make_shared<Made>(work(read));
            scheduler().post([this, self = std::move(self), done = std::move(done), made] {
                if (!under_way()) return;
                set_stage(std::nullopt);
                done(std::move(*made));
            });
        },
        [this, self](Error const& error) {
            if (under_way()) fail(named(error));
        });
}

/// A call of a model that makes one pass.
template <class T>
class ModelCall final : public PromiseCall<T, TrainingCall> {
public:
    using Decode = std::function<Result<T>(std::vector<RetrievedResult> const&)>;

    ModelCall(Promise<T> promise, std::shared_ptr<TrainingModel> model, std::string name,
              CallOptions call, PassPlan plan, Decode decode)
        : PromiseCall<T, TrainingCall>{std::move(promise), model->core_handle(), std::move(name),
                                       std::move(call)},
          model_{std::move(model)},
          plan_{std::move(plan)},
          decode_{std::move(decode)} {}

private:
    void go() override { this->start(std::move(plan_)); }
    void on_pass(std::vector<RetrievedResult> results) override {
        this->template read<Result<T>>(std::move(results), decode_, [this](Result<T> result) {
            if (!result) return this->unreadable(result.error());
            this->keep(std::move(result));
        });
    }
    void drop() noexcept override {
        plan_ = {};  // and the turn, if it was not begun
        this->TrainingCall::drop();
    }
    QueueStateReporter& reporter() override { return model_->reporter(); }
    std::string const& owner() const override { return model_->id(); }

    std::shared_ptr<TrainingModel> const model_;
    PassPlan plan_;
    Decode const decode_;
};

/// Starts such a call. Any thread.
template <class T>
[[nodiscard]] Future<T> call_model(Runtime const& runtime, std::shared_ptr<TrainingModel> model,
                                   std::string name, CallOptions call, PassPlan plan,
                                   typename ModelCall<T>::Decode decode) {
    return launch<ModelCall<T>>(runtime, std::move(model), std::move(name), std::move(call),
                                std::move(plan), std::move(decode));
}

}  // namespace tinkxx::service
