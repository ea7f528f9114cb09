#include "simulation/local/local_hostile.hpp"

#include "base/common/entropy.hpp"
#include "simulation/common/messages.hpp"
#include "simulation/sampling/sampling_model.hpp"
#include "simulation/training/training_model.hpp"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace tinkxx::simulation {

using namespace std::chrono_literals;

namespace {

/// Names requests of hostile clients where others have the mark of a call.
constexpr std::string_view mine = "hostile";

/// Of `engine::EngineOptions`: what a token takes in a world that is not slow.
constexpr auto token_time = 100us;

// One hog asks for all that a session may have pending, each of it as large as can be.
constexpr std::int64_t most_samples = 4;
constexpr std::int64_t hog_prompt = 4;
constexpr std::int64_t hog_tokens = 60;
constexpr int hog_requests = 70;
constexpr std::size_t pending_samples = 150;
/// Keys and values of sixteen samples: the others have to wait.
constexpr std::size_t cache_bytes = std::size_t{32} << 10U;

/// A sample of a few tokens of a client that has asked for nothing else is done once the server
/// has computed so many tokens, whatever others have queued: one hog queues fifteen times as many.
constexpr std::int64_t fair_tokens = 1000;
/// While so many are computed there are probes: about half of what a hog queues.
constexpr std::int64_t probed_tokens = 8000;
std::string in_quotes(std::string_view text) { return '"' + std::string{text} + '"'; }

std::string sample_of(std::string const& sampler, std::string const& seq, std::string const& count,
                      std::string const& tokens, std::string const& more = {}) {
    return R"({"sampling_session_id":)" + in_quotes(sampler) + R"(,"seq_id":)" + seq +
           R"(,"num_samples":)" + count +
           R"(,"prompt":{"chunks":[{"type":"encoded_text","tokens":[3,5,7,2]}]},)" +
           R"("sampling_params":{"max_tokens":)" + tokens + R"(,"stop":[]})" + more + "}";
}

std::string poll_of(std::string const& request_id) {
    return R"({"request_id":)" + in_quotes(request_id) + "}";
}

std::string member(ServerReply const& answer, std::string_view name) {
    if (answer.status != 200) return {};
    return std::string{json_member(answer.body, name)};
}

}  // namespace

/// A request under way.
struct HostileClients::Asking final : ReplySink, std::enable_shared_from_this<Asking> {
    Asking(HostileClients& its_owner, std::uint64_t its_id, std::string its_kind, Then its_then)
        : owner{its_owner}, id{its_id}, kind{std::move(its_kind)}, then{std::move(its_then)} {}

    void on_head(Head head) override { answer.status = head.status; }
    void on_data(std::span<char const> data) override {
        answer.body.append(data.begin(), data.end());
    }
    void on_done(Timing const& /*timing*/) override {
        auto const keep = leave();
        owner.note_("hostile < " + kind + ' ' + std::to_string(answer.status));
        ++owner.tally_["hostile answer: " + std::to_string(answer.status)];
        if (then && !owner.gone_) then(answer);
    }
    void on_failure(Failure failure) override {
        auto const keep = leave();
        owner.note_("hostile < " + kind + ' ' + failure.message);
        ++owner.tally_["hostile answer: none"];
    }
    std::shared_ptr<Asking> leave() {
        auto self = shared_from_this();
        owner.asking_.erase(id);
        return self;
    }

    HostileClients& owner;
    std::uint64_t id;
    std::string kind;
    Then then;
    ServerReply answer{};
    Call call{};
    support::TestTimer patience{};
};

HostileClients::HostileClients(std::uint64_t seed, testing::ManualClock& clock, LocalHost& host,
                               Tally& tally, Say note, Say problem)
    : random_{base::mix(seed ^ 0x686f7374696c65U)},
      clock_{clock},
      host_{host},
      tally_{tally},
      note_{std::move(note)},
      problem_{std::move(problem)} {}

HostileClients::~HostileClients() { end(); }

bool HostileClients::visit(std::uint64_t seed) {
    return service::Random{base::mix(seed ^ 0x7669736974U)}.unit() < 0.4;
}

void HostileClients::tighten(local::ServerOptions& options) {
    options.limits.num_samples = static_cast<std::size_t>(most_samples);
    options.limits.pending_samples = pending_samples;
    options.cache_bytes = cache_bytes;
}

bool HostileClients::sent(Served const& served) { return served.mark == mine; }

void HostileClients::begin(std::chrono::nanoseconds storm) {
    ++tally_["hostile: world"];
    at(span(1s), [this] { arrive(); });
    auto const acts = 20 + below(30);
    for (std::int64_t i = 0; i < acts; ++i) at(span(storm), [this] { act(); });
    auto const hogs = below(3);
    for (std::int64_t i = 0; i < hogs; ++i) {
        // Beside faults, and where nothing else can be the reason why others wait.
        auto const when = unit() < 0.5 ? span(storm) : storm + span(10s);
        at(when, [this, work = work_] { hog(work); });
    }
    if (unit() < 0.5) at(span(storm), [this] { be_silent(); });
}

void HostileClients::end() {
    gone_ = true;
    for (auto const& [id, asking] : std::exchange(asking_, {})) host_.cancel(asking->call);
}

void HostileClients::on_served(Served const& served) {
    bool const refused = served.status == 501 || served.status == 503;
    if (served.status >= 500 && !refused) {
        problem_("a hostile request of " + served.path + " was answered with " +
                 std::to_string(served.status) + ": " + served.answer.substr(0, 300) + "; it was " +
                 served.body.substr(0, 300));
    }
}

void HostileClients::overhear(Served const& served) {
    if (served.status != 200 || !served.path.ends_with("/create_sampling_session")) return;
    others_.emplace_back(json_member(served.answer, "sampling_session_id"));
}

// How they ask ------------------------------------------------------------------------------------

void HostileClients::at(std::chrono::nanoseconds after, std::function<void()> action) {
    auto& alarm = alarms_.emplace_back();
    alarm.action = [this, &alarm, action = std::move(action)] {
        if (!gone_) action();
        alarm.action = {};  // and what it holds
    };
    clock_.arm(alarm, clock_.now() + after, Precision::exact);
}

void HostileClients::ask(Question question, Then then) {
    if (gone_) return;
    auto const id = ++last_;
    ++tally_["hostile: " + question.kind];
    note_("hostile > " + question.kind + ' ' + question.path + ' ' +
          std::to_string(question.body.size()) + " bytes");
    auto const asking = std::make_shared<Asking>(*this, id, question.kind, std::move(then));
    asking_[id] = asking;
    Request request{.method = std::move(question.method),
                    .url = "http://localhost/api/v1/" + question.path,
                    .headers = std::move(question.headers)};
    request.headers.add(std::string{mark_line}, std::string{mine});
    if (!question.body.empty()) {
        request.body.tail = std::make_shared<std::string const>(std::move(question.body));
    }
    asking->call = host_.start(std::move(request), *asking);
    if (!question.patience) return;
    asking->patience.action = [this, id] {
        auto const found = asking_.find(id);
        if (found == asking_.end()) return;
        note_("hostile x " + found->second->kind);
        ++tally_["hostile answer: not awaited"];
        auto const keep = found->second;
        asking_.erase(found);
        host_.cancel(keep->call);
    };
    clock_.arm(asking->patience, clock_.now() + *question.patience, Precision::exact);
}

void HostileClients::with_session(std::string const& kind, std::function<void(std::string)> then) {
    ask({.kind = kind, .path = "create_session", .body = "{}"},
        [then = std::move(then)](ServerReply const& answer) {
            if (auto session = member(answer, "session_id"); !session.empty()) {
                then(std::move(session));
            }
        });
}

void HostileClients::with_sampler(std::string const& kind, std::function<void(std::string)> then) {
    with_session(kind, [this, kind, then = std::move(then)](std::string const& session) {
        ask({.kind = kind,
             .path = "create_sampling_session",
             .body = R"({"session_id":)" + in_quotes(session) +
                     R"(,"sampling_session_seq_id":0,"base_model":)" + in_quotes(local_model) +
                     "}"},
            [then](ServerReply const& answer) {
                if (auto id = member(answer, "sampling_session_id"); !id.empty()) {
                    then(std::move(id));
                }
            });
    });
}

std::string HostileClients::number() {
    constexpr std::array<char const*, 7> numbers{"9223372036854775807",
                                                 "-1",
                                                 "-9223372036854775808",
                                                 "9223372036854775806",
                                                 "18446744073709551616",
                                                 "1e308",
                                                 "0.5"};
    return numbers[random_.next() % numbers.size()];
}

std::string HostileClients::noise(std::size_t bytes) {
    std::string text(bytes, '\0');
    for (auto& c : text) c = static_cast<char>(random_.next());
    return text;
}

std::string HostileClients::known_sampler() {
    if (others_.empty() || unit() < 0.4) return sampler_.empty() ? "nobody:sample:0" : sampler_;
    return others_[random_.next() % others_.size()];
}

std::chrono::nanoseconds HostileClients::time_of(std::int64_t tokens) const {
    return token_time * tokens * host_.slowness();
}

// What they do ------------------------------------------------------------------------------------

void HostileClients::arrive() {
    with_sampler("session", [this](std::string const& sampler) {
        sampler_ = sampler;
        session_ = sampler.substr(0, sampler.find(':'));
        ask({.kind = "session",
             .path = "create_model",
             .body = R"({"session_id":)" + in_quotes(session_) +
                     R"(,"model_seq_id":0,"base_model":)" + in_quotes(local_model) +
                     R"(,"lora_config":{"rank":1,"seed":1}})"},
            [this](ServerReply const& answer) { model_ = member(answer, "model_id"); });
    });
}

void HostileClients::act() {
    if (session_.empty()) return arrive();
    using Act = void (HostileClients::*)();
    constexpr std::array<Act, 12> acts{
        &HostileClients::huge_cursor,  &HostileClients::huge_cursor,  &HostileClients::huge_sample,
        &HostileClients::huge_step,    &HostileClients::huge_name,    &HostileClients::huge_page,
        &HostileClients::abandon_poll, &HostileClients::large_body,   &HostileClients::packed_body,
        &HostileClients::garbage,      &HostileClients::unknown_name, &HostileClients::read_others};
    (this->*acts[random_.next() % acts.size()])();
}

/// Says that it has seen all that there will ever be, also in the name of others.
void HostileClients::huge_cursor() {
    ask({.kind = "huge cursor",
         .path = "retrieve_futures",
         .body = R"({"target":{"type":"sampling_session","sampling_session_id":)" +
                 in_quotes(known_sampler()) + R"(,"cloned_sampler_id":)" +
                 (unit() < 0.5 ? "0" : number()) + R"(},"prev_cursor":)" + number() + "}",
         .patience = unit() < 0.3 ? std::optional{span(1s)} : std::nullopt});
}

void HostileClients::huge_sample() {
    auto const seq = std::to_string(next_++);
    std::array<std::string, 7> const bodies{
        sample_of(sampler_, number(), "1", "2"),
        sample_of(sampler_, seq, number(), "2"),
        sample_of(sampler_, seq, "1", number()),
        sample_of(sampler_, seq, number(), number()),
        sample_of(sampler_, seq, "1", "2", R"(,"topk_prompt_logprobs":)" + number()),
        sample_of(sampler_, seq, "1", "2", R"(,"topk_sample_logprobs":)" + number()),
        sample_of(sampler_, seq, "1", "2",
                  R"(,"prompt_logprobs":true,"prompt_logprobs_last_n":)" + number())};
    ask({.kind = "huge sample", .path = "asample", .body = bodies[random_.next() % bodies.size()]});
}

void HostileClients::huge_step() {
    if (model_.empty()) return huge_sample();
    if (unit() < 0.5) {
        return ask({.kind = "huge step",
                    .path = "optim_step",
                    .body = R"({"model_id":)" + in_quotes(model_) + R"(,"seq_id":)" + number() +
                            R"(,"adam_params":{"learning_rate":0.1}})"});
    }
    ask({.kind = "huge step",
         .path = "forward_backward",
         .body =
             R"({"model_id":)" + in_quotes(model_) + R"(,"seq_id":)" + number() +
             R"(,"forward_backward_input":{"data":[{"model_input":{"chunks":[{"tokens":[3]}]},)" +
             R"("loss_fn_inputs":{"target_tokens":{"data":[5],"dtype":"int64"},)" +
             R"("weights":{"data":[1],"dtype":"float32"}}}],"loss_fn":"cross_entropy"}})"});
}

/// Numbers that become a part of names.
void HostileClients::huge_name() {
    if (unit() < 0.5) {
        return ask({.kind = "huge name",
                    .path = "create_sampling_session",
                    .body = R"({"session_id":)" + in_quotes(session_) +
                            R"(,"sampling_session_seq_id":)" + number() + R"(,"base_model":)" +
                            in_quotes(local_model) + "}"});
    }
    ask({.kind = "huge name",
         .path = "create_model",
         .body = R"({"session_id":)" + in_quotes(session_) + R"(,"model_seq_id":)" + number() +
                 R"(,"base_model":)" + in_quotes(local_model) + R"(,"lora_config":{"rank":)" +
                 (unit() < 0.5 ? "1" : number()) + "}}"});
}

void HostileClients::huge_page() {
    constexpr std::array<char const*, 4> lists{"training_runs", "checkpoints", "sessions",
                                               "billing/usage/events"};
    ask({.kind = "huge page",
         .method = "GET",
         .path = std::string{lists[random_.next() % lists.size()]} + "?limit=" + number() +
                 "&offset=" + number()});
}

/// Asks for a sample and for its result, and does not wait for it.
void HostileClients::abandon_poll() {
    auto const patience = span(200ms) * host_.slowness();
    ask({.kind = "small sample",
         .path = "asample",
         .body = sample_of(sampler_, std::to_string(next_++), "2", "40")},
        [this, patience](ServerReply const& answer) {
            auto const id = member(answer, "request_id");
            if (id.empty()) return;
            for (int i = 0; i < 4; ++i) {
                ask({.kind = "abandoned poll",
                     .path = "retrieve_future",
                     .body = poll_of(id),
                     .patience = patience});
            }
        });
}

/// Good and bad bodies that are too large for the loop to read.
void HostileClients::large_body() {
    auto const spaces =
        std::string(static_cast<std::size_t>(unit() < 0.8 ? (17 << 10) + below(60'000)
                                                          : (257 << 10) + below(60'000)),
                    ' ');
    auto const drawn = unit();
    std::string const path = drawn < 0.7 ? "asample" : drawn < 0.85 ? "optim_step" : "telemetry";
    auto body = drawn < 0.35 ? sample_of(sampler_, std::to_string(next_++), "1", "2") + spaces
                             : "{" + spaces + (drawn < 0.5 ? "" : "}");
    ask({.kind = "large body",
         .path = path,
         .body = std::move(body),
         .patience = unit() < 0.2 ? std::optional{span(1ms)} : std::nullopt});
}

void HostileClients::packed_body() {
    auto const drawn = unit();
    auto const plain = drawn < 0.5 ? sample_of(sampler_, std::to_string(next_++), "1", "2")
                                   : std::string(std::size_t{1} << 20U, ' ');
    std::string packed(ZSTD_compressBound(plain.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 1));
    if (drawn > 0.7) packed.resize(packed.size() / 2);
    if (drawn > 0.8) packed = noise(static_cast<std::size_t>(1 + below(200)));
    ask({.kind = "packed body",
         .path = unit() < 0.7 ? "asample" : "forward_backward",
         .body = std::move(packed),
         .headers = {{"Content-Encoding", drawn > 0.95 ? "br" : "zstd"}}});
}

void HostileClients::garbage() {
    constexpr std::array<char const*, 8> paths{
        "asample",    "forward_backward",        "create_session", "retrieve_future",
        "optim_step", "create_sampling_session", "weights_info",   "retrieve_futures"};
    auto body = noise(static_cast<std::size_t>(unit() < 0.8 ? 1 + below(300) : 20'000));
    if (unit() < 0.3) {
        body = sample_of(sampler_, "0", "1", "2");
        body.resize(static_cast<std::size_t>(below(body.size())));
    }
    if (unit() < 0.1) body = std::string(20'000, '[');
    Question question{
        .kind = "garbage", .path = paths[random_.next() % paths.size()], .body = std::move(body)};
    if (unit() < 0.3) question.headers.add("Content-Type", "application/x-protobuf");
    ask(std::move(question));
}

void HostileClients::unknown_name() {
    auto const nobody =
        in_quotes(unit() < 0.5 ? "nobody:train:0" : noise(1) + "/../../" + number());
    std::array<Question, 7> questions{
        Question{.method = "GET", .path = "samplers/nobody"},
        Question{.method = "GET", .path = "training_runs/nobody%3Atrain%3A0/checkpoints"},
        Question{.method = "GET", .path = "training_runs/x/checkpoints/weights/%2e%2e/archive"},
        Question{.path = "retrieve_future", .body = R"({"request_id":)" + nobody + "}"},
        Question{.path = "get_info", .body = R"({"model_id":)" + nobody + "}"},
        Question{.path = "weights_info",
                 .body = R"({"tinker_path":"tinker://nobody:train:0/weights/../../x"})"},
        Question{.path = "asample", .body = sample_of("nobody:sample:" + number(), "0", "1", "1")}};
    auto& question = questions[random_.next() % questions.size()];
    question.kind = "unknown name";
    ask(std::move(question));
}

void HostileClients::read_others() {
    if (unit() < 0.3) {
        return ask(
            {.kind = "read of others", .method = "GET", .path = "samplers/" + known_sampler()});
    }
    ask({.kind = "read of others", .method = "GET", .path = "checkpoints?limit=1"},
        [this](ServerReply const& answer) {
            auto const path = member(answer, "tinker_path");
            if (path.empty()) return;
            ask({.kind = "read of others",
                 .path = "weights_info",
                 .body = R"({"tinker_path":)" + in_quotes(path) + "}"});
        });
}

/// Asks for as much as it gets, and for more.
void HostileClients::hog(Work const& work) {
    with_sampler("hog", [this, work](std::string const& sampler) {
        for (int i = 0; i < hog_requests; ++i) {
            ask({.kind = "hog",
                 .path = "asample",
                 .body = sample_of(sampler, std::to_string(i), std::to_string(most_samples),
                                   std::to_string(hog_tokens))},
                [this](ServerReply const& answer) {
                    if (answer.status == 429) ++tally_["hostile: hog refused"];
                });
        }
        // The server may have taken on what it did not live to answer.
        constexpr auto tokens = hog_requests * (hog_prompt + most_samples * hog_tokens);
        queued_tokens_ += tokens;
        crowd(tokens);
        for (int i = 0; i < 3; ++i) at(span(time_of(probed_tokens)), [this, work] { probe(work); });
    });
}

void HostileClients::crowd(std::int64_t tokens) {
    // Twice: training has its share.
    crowded_until_ = std::max(crowded_until_, clock_.now()) + time_of(2 * tokens);
}

bool HostileClients::crowded() {
    // After a crash all of it may begin anew.
    if (std::exchange(crowded_life_, host_.life()) != host_.life()) crowd(queued_tokens_);
    return clock_.now() < crowded_until_;
}

void HostileClients::be_silent() {
    for (int i = 0; i < 40; ++i) {
        ask({.kind = "silent session", .path = "create_session", .body = "{}"});
    }
}

// Fairness ----------------------------------------------------------------------------------------

void HostileClients::probe(Work const& work) {
    with_sampler("probe", [this, work](std::string const& sampler) {
        ask({.kind = "probe", .path = "asample", .body = sample_of(sampler, "0", "1", "4")},
            [this, work](ServerReply const& answer) {
                auto const id = member(answer, "request_id");
                if (id.empty()) return;
                await_probe(work, id, clock_.now(), host_.life());
            });
    });
}

void HostileClients::await_probe(Work const& work, std::string const& id, TimePoint accepted,
                                 int life) {
    ask({.kind = "poll of a probe", .path = "retrieve_future", .body = poll_of(id)},
        [this, work, id, accepted, life](ServerReply const& answer) {
            // A server that has just started has to do all of it again.
            if (life != host_.life() || answer.status != 200) return;
            if (json_member(answer.body, "type") == "try_again") {
                return await_probe(work, id, accepted, life);
            }
            judge_probe(accepted);
        });
}

void HostileClients::judge_probe(TimePoint accepted) {
    auto const taken = clock_.now() - accepted;
    auto const tokens = taken / time_of(1);
    ++tally_["fairness: measured"];
    ++tally_[tokens <= fair_tokens / 10  ? "fairness: a tenth of the time"
             : tokens <= fair_tokens     ? "fairness: in time"
             : tokens <= 2 * fair_tokens ? "fairness: late"
                                         : "fairness: far too late"];
    if (tokens <= fair_tokens) return;
    problem_("a small sample took the time of " + std::to_string(tokens) +
             " tokens beside hogs, and may take that of " + std::to_string(fair_tokens));
}

}  // namespace tinkxx::simulation
