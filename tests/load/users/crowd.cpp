#include "load/users/crowd.hpp"

#include "load/users/explained.hpp"

#include <utility>

namespace tinkxx::load {

using Clock = std::chrono::steady_clock;

namespace {
/// HTTP/1.1 connections of a user for each group of purposes, of which it uses three: the server
/// takes 8192 in all.
constexpr int connections = 4;
}  // namespace

struct Crowd::Call {
    std::size_t user{0};
    std::uint64_t number{0};
    Question const* question{nullptr};
    Clock::time_point begun{Clock::now()};
    std::atomic<bool> ended{false};
};

Crowd::Crowd(Options const& options, std::string const& url, Runtime const& runtime,
             std::vector<Question> const& questions, Problems& problems)
    : samples_{options.samples}, questions_{questions}, problems_{problems} {
    for (int i = 0; i < options.users; ++i) {
        ClientOptions client;
        client.base_url = url;
        client.api_key = "tml-user-" + std::to_string(i);
        client.runtime = runtime;
        client.net.max_http1_connections = connections;
        // Beside ten thousand others one may wait long for a connection or a turn of the server.
        client.timeouts.connect = std::chrono::minutes{1};
        client.timeouts.pool = std::chrono::minutes{5};
        services_.emplace_back(std::move(client));
        samplers_.push_back(services_.back().create_sampling_client(model_name));
    }
}

void Crowd::start() {
    for (std::size_t user = 0; user < samplers_.size(); ++user) {
        for (int i = 0; i < samples_; ++i) begin(user, static_cast<std::uint64_t>(i));
    }
}

void Crowd::begin(std::size_t user, std::uint64_t number) {
    {
        std::scoped_lock const lock{mutex_};
        ++tally_.begun;
    }
    auto const call = std::make_shared<Call>();
    call->user = user;
    call->number = number;
    call->question = &questions_[(user * 7 + number) % questions_.size()];
    samplers_[user].sample_async(
        call->question->prompt, call->question->params, {},
        [this, call](Result<SampleResponse> const& result) { end(*call, result); });
}

void Crowd::end(Call& call, Result<SampleResponse> const& result) {
    auto const name = [&call] {
        return "sample " + std::to_string(call.number) + " of user " + std::to_string(call.user);
    };
    if (call.ended.exchange(true)) return problems_.add(name() + " ended twice");
    bool const right = result && call.question->right(*result);
    bool const explained = !result && chaos_explains(result.error());
    if (result && !right) problems_.add(name() + " got another answer than a quiet server gives");
    if (!result && !explained) problems_.add(name() + " failed: " + result.error().what());
    bool const again = open_;
    {
        std::scoped_lock const lock{mutex_};
        latencies_.add(Clock::now() - call.begun);
        ++tally_.ended;
        if (right) ++tally_.right;
        if (explained) ++tally_.explained;
        // Under the lock: whoever waits may be gone afterwards.
        if (!again) ended_.notify_all();
    }
    if (again) begin(call.user, call.number + static_cast<std::uint64_t>(samples_));
}

bool Crowd::wait_until(Clock::time_point limit) {
    std::unique_lock lock{mutex_};
    return ended_.wait_until(lock, limit, [this] { return tally_.ended == tally_.begun; });
}

Tally Crowd::tally() const {
    std::scoped_lock const lock{mutex_};
    auto tally = tally_;
    tally.p50 = latencies_.quantile(0.5);
    tally.p99 = latencies_.quantile(0.99);
    tally.longest = latencies_.longest();
    return tally;
}

std::uint64_t Crowd::numbers_used() const {
    std::uint64_t sum = 0;
    for (auto const& sampler : samplers_) {
        sum += static_cast<std::uint64_t>(sampler.stats().get().next_sequence_id);
    }
    return sum;
}

std::string Crowd::pending() const {
    std::string text;
    int shown = 0;
    for (auto const& service : services_) {
        for (auto const& operation : service.status().get().pending) {
            if (++shown > 5) return text;
            text += "\n    " + to_string(operation);
        }
    }
    return text;
}

bool Crowd::close(Clock::time_point limit) {
    std::vector<Future<void>> closing;
    for (auto const& service : services_) {
        closing.push_back(service.close(CloseReason::success));
    }
    for (auto& one : closing) {
        auto const left =
            std::chrono::duration_cast<std::chrono::milliseconds>(limit - Clock::now());
        if (!one.wait_for(std::max(left, std::chrono::milliseconds{0}))) return false;
        if (auto const closed = one.result(); !closed && !chaos_explains(closed.error())) {
            problems_.add(std::string{"a session did not end: "} + closed.error().what());
        }
    }
    return true;
}

}  // namespace tinkxx::load
