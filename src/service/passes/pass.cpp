#include "service/passes/pass.hpp"

#include "base/loop/loop_rule.hpp"
#include "service/http/http_error.hpp"

#include <algorithm>
#include <utility>

namespace tinkxx::service {

/// A submit that is written anew, on its way through the callback executor. The owner belongs to
/// the loop, the rest to whoever has the turn.
struct Pass::Recoding {
    Pass* owner{nullptr};
    std::size_t index{0};
    bool settles{false};  ///< a request of an earlier call
    std::function<Result<SubmitOrder>()> write{};
    std::optional<Result<SubmitOrder>> order{};
};

void Pass::start(PassPlan plan) {
    TINKXX_ASSERT_LOOP(core_->scheduler());
    plan_ = std::move(plan);
    auto const count = plan_.submits.size();
    extras_ = std::make_shared<RequestExtras const>(
        RequestExtras{.headers = std::move(plan_.headers), .metadata = std::move(plan_.metadata)});
    order_.emplace(count, plan_.parallel);
    submissions_.clear();
    submissions_.resize(count);
    results_.clear();
    results_.resize(count);
    results_left_ = count;
    refusals_.assign(count, std::nullopt);
    doubted_.assign(count, std::nullopt);
    waits_for_turn_ = plan_.ticket && !plan_.ticket.enter(*this, plan_.name);
    if (!waits_for_turn_) return on_turn();
    if (auto const refusal = BreakerGuard::refusal_while_open(plan_.breaker)) {
        // Its place goes to those behind it now, since its turn may come before it is told.
        waits_for_turn_ = false;
        plan_.ticket.reset();
        return refuse_later(0, *refusal);
    }
    listener_->on_standing();
}

void Pass::on_turn() {
    waits_for_turn_ = false;
    if (core_->ending()) return;  // the end comes to everyone in turn
    if (plan_.ticket) return settle();
    begin();
}

/// Sends again what the service may have or not: it would wait for the number, or refuse it to
/// another request.
void Pass::settle() {
    auto& desk = plan_.ticket.desk();
    settling_.reset();
    settle_refusal_.reset();
    for (;;) {
        if (desk.unsettled().empty()) return begin();
        auto const& front = desk.unsettled().front();
        // A server that takes nothing else cannot have it; one that does knows its number.
        if (front.recode && plan_.encodings->decided() &&
            plan_.encodings->current() != front.order.encoding) {
            return settle_as(plan_.encodings->current(), std::nullopt);
        }
        auto const judged = judgement(front.order);
        if (judged.repeat_if_seen) return settle_with(front.order, judged);
        desk.settled(true);
    }
}

void Pass::settle_with(SubmitOrder const& order, Submission::Judgement judgement) {
    Submission::Listener& listener = *this;
    settling_ = std::make_unique<Submission>(
        *core_, listener, 0, plan_.ticket.desk().unsettled().front().extras, plan_.breaker);
    settling_->settle(order, judgement);
}

void Pass::settle_as(wire::Encoding encoding, std::optional<Error> refusal) {
    settle_refusal_ = std::move(refusal);
    auto const job = std::make_shared<Recoding>();
    job->settles = true;
    job->write = [recode = plan_.ticket.desk().unsettled().front().recode, encoding] {
        return recode(encoding);
    };
    write_anew(job);
}

void Pass::settle_recoded(Recoding const& job) {
    auto const& made = *job.order;
    if (made) return settle_with(*made, judgement(*made));
    // The server falls over it, and nothing else can be said.
    plan_.ticket.desk().settled(true);
    settle();
}

void Pass::settle_refused(Error error) {
    auto& desk = plan_.ticket.desk();
    auto const& front = desk.unsettled().front();
    auto const status = error.http_status().value_or(0);
    if (front.recode && !settle_refusal_) {
        auto const other = plan_.encodings->refused(*front.order.encoding, error);
        // Otherwise the refusal is clear: it never came to be in this encoding, the only one.
        if (other && (front.in_both || status == 500)) return settle_as(*other, std::move(error));
    }
    auto fate = settling_->fate();
    // The server takes the first encoding and no other, so it may have it, and falls over it.
    bool const one_encoding = status == 404 || status == 415;
    if (settle_refusal_ && settle_refusal_->http_status() == 500 && one_encoding) {
        fate = Fate::taken;
    }
    if (fate != Fate::unknown) {
        desk.settled(fate == Fate::taken);
        return settle();
    }
    auto details = error.details();
    details.message = "request " + std::to_string(front.order.seq_id) +
                      " of the model may or may not have arrived, and could not be sent again: " +
                      details.message;
    fail(Error{std::move(details)});
}

void Pass::begin() {
    settling_.reset();
    if (plan_.ticket) plan_.ticket.begin();
    auto const next = order_->begin();
    for (auto i = next.first; i < next.first + next.count; ++i) submit(i);
}

void Pass::submit(std::size_t index) {
    if (!submissions_[index]) {
        Submission::Listener& listener = *this;
        submissions_[index] =
            std::make_unique<Submission>(*core_, listener, index, extras_, plan_.breaker);
    }
    auto& order = plan_.submits[index];
    if (plan_.encodings && plan_.recode && plan_.encodings->decided() &&
        order.encoding != plan_.encodings->current()) {
        return recode(index, plan_.encodings->current(), std::nullopt);
    }
    if (plan_.ticket) {
        if (auto const done = set_number(order, plan_.ticket.seq_id(index)); !done) {
            return refuse_later(index, done.error());
        }
    }
    submissions_[index]->start(order, judgement(order));
}

Submission::Judgement Pass::judgement(SubmitOrder const& order) const {
    Submission::Judgement made;
    if (!plan_.encodings) return made;
    bool const tried = order.encoding && !plan_.encodings->decided();
    made.plain_500_ends = tried && order.encoding == wire::Encoding::protobuf;
    bool const old =
        plan_.encodings->old_server() || (tried && order.encoding == wire::Encoding::json);
    made.repeat_if_seen = !order.step || core_->config().repeat_steps.value_or(!old);
    return made;
}

void Pass::recode(std::size_t index, wire::Encoding encoding, std::optional<Error> refusal) {
    refusals_[index] = std::move(refusal);
    auto const job = std::make_shared<Recoding>();
    job->index = index;
    job->write = [recode = plan_.recode, index, encoding,
                  seq_id = plan_.ticket ? plan_.ticket.seq_id(index) : 0] {
        return recode(index, encoding, seq_id);
    };
    write_anew(job);
}

void Pass::write_anew(std::shared_ptr<Recoding> const& job) {
    job->owner = this;
    recodings_.push_back(job);
    auto& runtime = core_->http().runtime();
    runtime.run_callback(
        [job, core = runtime.shared_from_this()] {
            job->order.emplace(job->write());
            core->scheduler().post([job] {
                if (job->owner != nullptr) job->owner->recoded(*job);
            });
        },
        [job](Error error) {
            job->order.emplace(std::move(error));
            if (job->owner != nullptr) job->owner->recoded(*job);
        });
    listener_->on_standing();
}

/// Nobody is told of a failure from inside `start`.
void Pass::refuse_later(std::size_t index, Error const& error) {
    auto const job = std::make_shared<Recoding>();
    job->owner = this;
    job->index = index;
    job->order.emplace(error);
    recodings_.push_back(job);
    core_->scheduler().post([job] {
        if (job->owner != nullptr) job->owner->recoded(*job);
    });
}

void Pass::recoded(Recoding& job) {
    std::erase_if(recodings_, [&job](auto const& each) { return each.get() == &job; });
    if (core_->ending()) return;
    if (job.settles) return settle_recoded(job);
    if (!*job.order) {
        // What cannot be said in the other encoding was refused in the first.
        return fail(refusals_[job.index].value_or(job.order->error()));
    }
    auto& order = plan_.submits[job.index];
    order = **job.order;
    submissions_[job.index]->start(order, judgement(order));
}

void Pass::on_accepted(Submission& from) {
    if (&from == settling_.get()) {
        plan_.ticket.desk().settled(true);
        return settle();
    }
    auto& order = plan_.submits[from.index()];
    if (order.encoding && plan_.encodings->accepted(*order.encoding) &&
        order.encoding == wire::Encoding::json) {
        core_->http().log(LogLevel::info,
                          "the server takes forward and backward passes as JSON only; they are "
                          "sent so from here on");
    }
    order = {};  // the body is not needed any more
    auto const next = order_->on_accepted();
    if (order_->complete()) plan_.recode = {};
    if (next) submit(*next);
    if (plan_.ticket) plan_.ticket.ended(from.index());
    listener_->on_standing();
}

void Pass::on_refused(Submission& from, Error error) {
    if (&from == settling_.get()) return settle_refused(std::move(error));
    auto const index = from.index();
    auto const encoding = plan_.submits[index].encoding;
    if (encoding && plan_.recode && !refusals_[index]) {
        if (auto const other = plan_.encodings->refused(*encoding, error)) {
            if (from.fate() != Fate::not_taken) doubted_[index] = plan_.submits[index];
            return recode(index, *other, std::move(error));
        }
    }
    // A request that is refused in both encodings is at fault itself: the first answer counts.
    bool const refused =
        error.kind() == ErrorKind::status && !is_passing(error.http_status().value_or(0));
    fail(refused ? refusals_[index].value_or(error) : error);
}

void Pass::on_result(Submission& from, RetrievedResult result) {
    results_[from.index()] = std::move(result);
    if (--results_left_ > 0) return listener_->on_standing();
    std::vector<RetrievedResult> all;
    all.reserve(results_.size());
    for (auto& each : results_) all.push_back(*std::move(each));
    listener_->on_results(std::move(all));
}

void Pass::on_failed(Submission& from, Error error) {
    auto details = error.details();
    if (details.request_id.empty()) details.request_id = from.request_id();
    fail(Error{std::move(details)});
}

void Pass::on_queue_state(Submission& from, QueueState state, std::string const& reason) {
    listener_->on_queue_state(from, state, reason);
}

void Pass::fail(Error error) {
    cancel();
    listener_->on_error(std::move(error));
}

void Pass::out_of_time(Error const& error) noexcept {
    for (auto const& each : submissions_) {
        if (each) each->out_of_time(error);
    }
}

void Pass::cancel() noexcept {
    for (auto const& job : std::exchange(recodings_, {})) job->owner = nullptr;
    // Where a repeat would be applied again, there is no second try.
    if (settling_ && settling_->fate() == Fate::taken) plan_.ticket.desk().settled(true);
    settling_.reset();
    leave_turn();
    // What one of them gives back must not let another begin that is to end as well.
    auto submissions = std::exchange(submissions_, {});
    for (auto const& each : submissions) {
        if (each) each->stop_waiting();
    }
    // Requests first: whoever has the next turn should find the connection free.
    submissions.clear();
    waits_for_turn_ = false;
    auto const ticket = std::move(plan_.ticket);
    plan_.submits.clear();
    plan_.recode = {};
}

void Pass::leave_turn() noexcept {
    for (std::size_t i = 0; plan_.ticket && i < submissions_.size(); ++i) {
        if (!submissions_[i] || !submissions_[i]->request_id().empty()) continue;
        auto const fate = submissions_[i]->fate();
        bool const doubted = doubted_[i].has_value();
        if (plan_.submits[i].seq_id == 0 || (fate == Fate::not_taken && !doubted)) continue;
        plan_.ticket.use(i);
        if (fate == Fate::taken) continue;
        TurnDesk::Unsettled left{.extras = extras_};
        left.order = std::move(doubted ? *doubted_[i] : plan_.submits[i]);
        left.in_both = doubted && fate == Fate::unknown;
        if (left.order.encoding && plan_.recode) {
            left.recode = [recode = plan_.recode, i, seq_id = left.order.seq_id](
                              wire::Encoding encoding) { return recode(i, encoding, seq_id); };
        }
        plan_.ticket.desk().unsettled().push_back(std::move(left));
    }
}

Submission const* Pass::shown() const noexcept {
    if (settling_) return settling_.get();
    Submission const* newest = nullptr;
    for (std::size_t i = 0; i < submissions_.size(); ++i) {
        if (!submissions_[i] || results_[i]) continue;
        // What is not accepted holds up the rest.
        if (submissions_[i]->request_id().empty()) return submissions_[i].get();
        if (newest == nullptr) newest = submissions_[i].get();
    }
    return newest;
}

Stage Pass::stage() const noexcept {
    if (waits_for_turn_) return Stage::waiting_for_turn;
    if (!recodings_.empty()) return Stage::encoding;
    auto const* const one = shown();
    return one != nullptr ? one->stage() : Stage::submitting;
}

void Pass::describe(OperationStatus& status, TimePoint now) const {
    if (waits_for_turn_) {
        auto& desk = plan_.ticket.desk();
        auto const holder = desk.turns().holder();
        status.why = "request " + std::to_string(desk.foreseen(desk.turns().turn())) +
                     " of the model is not submitted yet";
        if (!holder.empty()) status.why += ": " + std::string{holder};
        status.why += "; this is request " + std::to_string(plan_.ticket.seq_id(0));
        return;
    }
    if (!recodings_.empty()) {
        status.why = "its data are written in the encoding that the server takes";
        return;
    }
    auto const* const one = shown();
    if (one == nullptr) return;
    one->describe(status, now);
    if (settling_) {
        status.why =
            "request " + std::to_string(plan_.ticket.desk().unsettled().front().order.seq_id) +
            " of the model, which may not have arrived, is sent again first; " + status.why;
        return;
    }
    auto const count = submissions_.size();
    if (count == 1) return;
    auto const done = static_cast<std::size_t>(
        std::ranges::count_if(results_, [](auto const& each) { return each.has_value(); }));
    status.why += "; of " + std::to_string(count) + " chunks " +
                  std::to_string(order_->accepted()) + " are accepted, " + std::to_string(done) +
                  " done; this is chunk " + std::to_string(one->index() + 1);
}

}  // namespace tinkxx::service
