#include <tinkxx/testing/faulty_transport.hpp>

#include "base/common/entropy.hpp"
#include "transport/start_failure.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace tinkxx::testing {

namespace {

enum class Fate : std::uint8_t { normal, drop_before, status, drop_after };

struct Plan {
    Fate fate{Fate::normal};
    int status{0};
    std::optional<std::chrono::milliseconds> retry_after{};
    bool duplicate{false};
    /// What part of the first piece of the body is still delivered.
    std::optional<double> reset_at{};
    bool trickle{false};
    std::chrono::nanoseconds delay{0};
};

Plan draw(FaultOptions const& options, std::uint64_t ordinal) {
    // Always the same draws in the same order: changing one probability leaves the others alone.
    auto const call_seed = base::mix(options.seed) ^ base::mix(~ordinal);
    std::uint64_t drawn = 0;
    auto const next = [&] { return base::mix(call_seed + drawn++); };
    auto const unit = [&] { return static_cast<double>(next() >> 11U) * 0x1p-53; };
    auto const chance = [&](double probability) { return unit() < probability; };
    Plan plan;
    bool const drop_before = chance(options.drop_before);
    bool const status = chance(options.status);
    auto const which = next();
    bool const hint = chance(options.retry_after);
    auto const hint_part = unit();
    bool const drop_after = chance(options.drop_after);
    bool const duplicate = chance(options.duplicate);
    bool const reset = chance(options.reset_body);
    auto const reset_part = unit();
    bool const trickle = chance(options.trickle);
    bool const delay = chance(options.delay);
    auto const delay_part = unit();

    if (delay) {
        plan.delay = std::chrono::nanoseconds{
            static_cast<std::int64_t>(static_cast<double>(options.delay_max.count()) * delay_part)};
    }
    if (drop_before) {
        plan.fate = Fate::drop_before;
    } else if (status && !options.statuses.empty()) {
        plan.fate = Fate::status;
        plan.status = options.statuses[which % options.statuses.size()];
        if (hint) {
            plan.retry_after = std::chrono::milliseconds{static_cast<std::int64_t>(
                static_cast<double>(options.retry_after_max.count()) * hint_part)};
        }
    } else {
        if (drop_after) plan.fate = Fate::drop_after;
        plan.duplicate = duplicate;
        if (reset) plan.reset_at = reset_part;
        plan.trickle = trickle;
    }
    return plan;
}

Failure reset(Seen seen, std::string message, TimePoint started, TimePoint now) {
    return {.kind = FailureKind::reset,
            .message = "FaultyTransport: " + std::move(message),
            .seen = seen,
            .timing = {.started = started, .finished = now}};
}

/// Takes the answer to a duplicate, which nobody waits for.
struct Discard final : ReplySink {
    void on_head(Head /*head*/) override {}
    void on_data(std::span<char const> /*data*/) override {}
    void on_done(Timing const& /*timing*/) override { over = true; }
    void on_failure(Failure /*failure*/) override { over = true; }
    Call call{};
    bool over{false};
};

}  // namespace

struct FaultyTransport::Impl {
    struct Exchange final : ReplySink, Timer {
        Exchange(Impl& impl, Call id, ReplySink& replies)
            : owner{&impl}, call{id}, sink{&replies} {}

        void on_time() override { owner->on_time(*this); }
        void on_head(Head answer) override { owner->on_head(*this, std::move(answer)); }
        void on_data(std::span<char const> data) override { owner->on_data(*this, data); }
        void on_done(Timing const& timing) override { owner->on_done(*this, timing); }
        void on_failure(Failure failure) override { owner->on_failure(*this, std::move(failure)); }

        Impl* owner;
        Call call;
        ReplySink* sink;
        Plan plan{};
        Request request{};
        TimePoint started{};
        Call inner{};
        bool begun{false};
        bool paused{false};
        // What a trickle still has to give.
        std::optional<Head> head{};
        std::string body{};
        std::size_t given{0};
        std::optional<Timing> done{};
        std::optional<Failure> failed{};
        std::optional<Failure> thrown{};  ///< the inner transport did not take the call
    };

    Impl(Scheduler& clock, std::shared_ptr<Transport> transport, FaultOptions faults)
        : scheduler{clock}, inner{std::move(transport)}, options{std::move(faults)} {}

    ~Impl() {
        for (auto& [id, exchange] : exchanges) {
            if (exchange->inner.id != 0) inner->cancel(exchange->inner);
        }
        for (auto& discard : discards) {
            if (!discard->over) inner->cancel(discard->call);
        }
    }

    void begin(Exchange& exchange) {
        exchange.begun = true;
        auto const& plan = exchange.plan;
        switch (plan.fate) {
            case Fate::drop_before: {
                ++counts.drop_before;
                auto failure = reset(Seen::no, "dropped before it was seen", exchange.started,
                                     scheduler.now());
                finish(exchange).on_failure(std::move(failure));
                return;
            }
            case Fate::status:
                ++counts.status;
                answer(exchange);
                return;
            case Fate::drop_after:
                ++counts.drop_after;
                break;
            case Fate::normal:
                break;
        }
        try {
            start(exchange);
        } catch (...) {
            exchange.thrown = base::start_failure();
            scheduler.arm(exchange, scheduler.now(), Precision::exact);
        }
    }

    void start(Exchange& exchange) {
        if (exchange.plan.duplicate) {
            ++counts.duplicate;
            std::erase_if(discards, [](auto const& discard) { return discard->over; });
            exchange.inner = inner->start(exchange.request, exchange);
            auto copy = std::make_unique<Discard>();
            copy->call = inner->start(std::move(exchange.request), *copy);
            discards.push_back(std::move(copy));
        } else {
            exchange.inner = inner->start(std::move(exchange.request), exchange);
        }
        if (exchange.paused && !exchange.plan.trickle) inner->pause(exchange.inner, true);
    }

    void answer(Exchange& exchange) {
        std::string const body = R"({"detail":"injected by FaultyTransport"})";
        Head head{.status = exchange.plan.status, .http_version = 11, .headers = {}};
        head.headers.add("content-type", "application/json");
        head.headers.add("content-length", std::to_string(body.size()));
        if (exchange.plan.retry_after) {
            head.headers.add("retry-after-ms", std::to_string(exchange.plan.retry_after->count()));
        }
        auto const call = exchange.call;
        exchange.sink->on_head(std::move(head));
        if (auto* still = find(call)) still->sink->on_data(body);
        if (auto* still = find(call)) {
            Timing const timing{.started = still->started, .finished = scheduler.now()};
            finish(*still).on_done(timing);
        }
    }

    void on_time(Exchange& exchange) {
        if (!exchange.begun) return begin(exchange);
        if (exchange.thrown) {
            auto failure = *std::move(exchange.thrown);
            if (exchange.inner.id != 0) inner->cancel(exchange.inner);
            finish(exchange).on_failure(std::move(failure));
            return;
        }
        give_some(exchange);
    }

    void on_head(Exchange& exchange, Head head) {
        if (exchange.plan.fate == Fate::drop_after) return;
        if (exchange.plan.trickle) {
            exchange.head = std::move(head);
            return;
        }
        exchange.sink->on_head(std::move(head));
    }

    void on_data(Exchange& exchange, std::span<char const> data) {
        if (exchange.plan.fate == Fate::drop_after) return;
        if (exchange.plan.trickle) {
            exchange.body.append(data.begin(), data.end());
            return;
        }
        if (!exchange.plan.reset_at) return exchange.sink->on_data(data);
        auto const call = exchange.call;
        auto const part =
            static_cast<std::size_t>(static_cast<double>(data.size()) * *exchange.plan.reset_at);
        if (part > 0) exchange.sink->on_data(data.first(part));
        if (auto* still = find(call)) {
            inner->cancel(still->inner);
            break_off(*still);
        }
    }

    void on_done(Exchange& exchange, Timing const& timing) {
        if (exchange.plan.fate == Fate::drop_after) return swallow(exchange);
        if (exchange.plan.trickle) {
            exchange.done = timing;
            return give_head(exchange);
        }
        if (exchange.plan.reset_at) return break_off(exchange);
        finish(exchange).on_done(timing);
    }

    void on_failure(Exchange& exchange, Failure failure) {
        if (exchange.plan.fate == Fate::drop_after) return swallow(exchange);
        if (exchange.plan.trickle && exchange.head) {
            exchange.failed = std::move(failure);
            return give_head(exchange);
        }
        finish(exchange).on_failure(std::move(failure));
    }

    void swallow(Exchange& exchange) {
        auto failure =
            reset(Seen::maybe, "dropped after it was seen", exchange.started, scheduler.now());
        finish(exchange).on_failure(std::move(failure));
    }

    void break_off(Exchange& exchange) {
        ++counts.reset_body;
        auto failure = reset(Seen::maybe, "reset in the middle of the body", exchange.started,
                             scheduler.now());
        finish(exchange).on_failure(std::move(failure));
    }

    void give_head(Exchange& exchange) {
        ++counts.trickle;
        exchange.inner = {};
        // How much of the body a reset lets through.
        if (exchange.plan.reset_at) {
            exchange.body.resize(static_cast<std::size_t>(
                static_cast<double>(exchange.body.size()) * *exchange.plan.reset_at));
        }
        scheduler.arm(exchange, scheduler.now() + options.trickle_delay, Precision::exact);
        exchange.sink->on_head(std::move(*exchange.head));
    }

    void give_some(Exchange& exchange) {
        if (exchange.paused) return;
        if (exchange.given < exchange.body.size()) {
            auto const size = std::min(std::max<std::size_t>(options.trickle_bytes, 1),
                                       exchange.body.size() - exchange.given);
            auto const piece = exchange.body.substr(exchange.given, size);
            exchange.given += size;
            scheduler.arm(exchange, scheduler.now() + options.trickle_delay, Precision::exact);
            exchange.sink->on_data(piece);
            return;
        }
        if (exchange.plan.reset_at) return break_off(exchange);
        if (exchange.failed) {
            auto failure = std::move(*exchange.failed);
            finish(exchange).on_failure(std::move(failure));
            return;
        }
        auto timing = *exchange.done;
        timing.finished = scheduler.now();
        finish(exchange).on_done(timing);
    }

    Exchange* find(Call call) {
        auto const found = exchanges.find(call.id);
        return found == exchanges.end() ? nullptr : found->second.get();
    }

    ReplySink& finish(Exchange& exchange) {
        auto& sink = *exchange.sink;
        exchanges.erase(exchange.call.id);
        return sink;
    }

    Scheduler& scheduler;
    std::shared_ptr<Transport> inner;
    FaultOptions options;
    FaultCounts counts{};
    std::map<std::uint64_t, std::unique_ptr<Exchange>> exchanges{};
    std::vector<std::unique_ptr<Discard>> discards{};
};

FaultyTransport::FaultyTransport(Scheduler& scheduler, std::shared_ptr<Transport> inner,
                                 FaultOptions options)
    : impl_{std::make_unique<Impl>(scheduler, std::move(inner), std::move(options))} {}

FaultyTransport::~FaultyTransport() = default;

FaultCounts const& FaultyTransport::counts() const noexcept { return impl_->counts; }

int FaultyTransport::times_sent(std::uint64_t ordinal) const {
    auto const plan = draw(impl_->options, ordinal);
    if (plan.fate == Fate::drop_before || plan.fate == Fate::status) return 0;
    return plan.duplicate ? 2 : 1;
}

void FaultyTransport::set_options(FaultOptions options) { impl_->options = std::move(options); }

Call FaultyTransport::start(Request request, ReplySink& sink) {
    auto const ordinal = impl_->counts.calls++;
    Call const call{ordinal + 1};
    auto& exchange = impl_->exchanges[call.id];
    exchange = std::make_unique<Impl::Exchange>(*impl_, call, sink);
    exchange->plan = draw(impl_->options, ordinal);
    exchange->started = impl_->scheduler.now();
    exchange->request = std::move(request);
    bool const inner_at_once =
        exchange->plan.delay.count() == 0 &&
        (exchange->plan.fate == Fate::normal || exchange->plan.fate == Fate::drop_after);
    if (exchange->plan.delay.count() > 0) ++impl_->counts.delay;
    if (inner_at_once) {
        impl_->begin(*exchange);
    } else {
        impl_->scheduler.arm(*exchange, exchange->started + exchange->plan.delay, Precision::exact);
    }
    return call;
}

void FaultyTransport::cancel(Call call) noexcept {
    auto* exchange = impl_->find(call);
    if (exchange == nullptr) return;
    if (exchange->inner.id != 0) impl_->inner->cancel(exchange->inner);
    impl_->exchanges.erase(call.id);
}

void FaultyTransport::pause(Call call, bool on) noexcept {
    auto* exchange = impl_->find(call);
    if (exchange == nullptr) return;
    exchange->paused = on;
    if (exchange->plan.trickle && exchange->begun) {
        // The inner answer is kept here anyway; only the giving stops.
        if (!on && (exchange->done || exchange->failed)) {
            impl_->scheduler.arm(*exchange, impl_->scheduler.now(), Precision::exact);
        }
    } else if (exchange->inner.id != 0) {
        impl_->inner->pause(exchange->inner, on);
    }
}

void FaultyTransport::discard(Call call) noexcept {
    auto const* exchange = impl_->find(call);
    if (exchange != nullptr && exchange->inner.id != 0) impl_->inner->discard(exchange->inner);
}

void FaultyTransport::drain(TimePoint deadline) noexcept { impl_->inner->drain(deadline); }

}  // namespace tinkxx::testing
