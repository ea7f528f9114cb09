#include "local/results/results.hpp"

#include "base/loop/loop_rule.hpp"
#include "local/api/sending.hpp"
#include "local/common/times.hpp"
#include "wire/json/json.hpp"
#include "wire/sampling/sample.hpp"
#include "wire/server/answers.hpp"
#include "wire/training/training.hpp"

#include <algorithm>
#include <cstdlib>

namespace tinkxx::local {

namespace {

std::string_view form_name(Form form) {
    switch (form) {
        case Form::sample:
            return "sample";
        case Form::forward_backward:
            return "forward_backward";
        case Form::json:
            break;
    }
    return "json";
}

Form form_of(std::string_view name) {
    if (name == "sample") return Form::sample;
    if (name == "forward_backward") return Form::forward_backward;
    return Form::json;
}

/// The JSON form of a result that is kept as protobuf.
std::string as_json(Form form, std::string const& payload) {
    if (form == Form::sample) {
        auto const decoded = wire::decode_sample_proto(payload);
        return decoded ? wire::server::encode_sample_json(*decoded) : std::string{"{}"};
    }
    if (form == Form::forward_backward) {
        auto const decoded = wire::decode_forward_backward_proto("forward_backward", payload);
        return decoded ? wire::server::encode_forward_backward_json(*decoded) : std::string{"{}"};
    }
    return payload;
}

}  // namespace

/// Somebody who waits for one result.
class Results::Poll final : public Timer {
public:
    Poll(Results& owner, std::string id, std::shared_ptr<Answer> to, bool as_protobuf,
         bool metadata_only)
        : answer{std::move(to)},
          protobuf{as_protobuf},
          metadata{metadata_only},
          owner_{owner},
          id_{std::move(id)} {}

    void on_time() override {
        auto const kept = answer;
        auto body = owner_.try_again(id_);
        auto& owner = owner_;
        owner.give_up(std::string{id_}, this);  // and with it this object
        send_json(*kept, std::move(body));
    }

    std::shared_ptr<Answer> answer;
    bool protobuf;
    bool metadata;

private:
    Results& owner_;
    std::string id_;
};

/// Somebody who waits for any result of a sampler.
class Results::CompletionPoll final : public Timer {
public:
    CompletionPoll(Results& owner, StreamKey key, std::int64_t seen, std::shared_ptr<Answer> to)
        : answer{std::move(to)}, previous{seen}, owner_{owner}, key_{std::move(key)} {}

    void on_time() override {
        auto const kept = answer;
        auto& owner = owner_;
        auto const seen = previous;
        owner.end_completion_poll(StreamKey{key_}, this);  // and with it this object
        owner.send_completions({}, seen, *kept);
    }

    std::shared_ptr<Answer> answer;
    std::int64_t previous;

private:
    Results& owner_;
    StreamKey key_;
};

/// Writes results again that could not be written.
class Results::Again final : public Timer {
public:
    explicit Again(Results& owner) : owner_{owner} {}
    void on_time() override {
        for (auto& [id, more] : std::exchange(owner_.unsaved_, {})) owner_.save(id, more, {});
    }

private:
    Results& owner_;
};

Results::Results(Scheduler& scheduler, Store& store, ResultsOptions options)
    : scheduler_{scheduler},
      store_{store},
      options_{options},
      cursor_{to_micros(scheduler.wall())},
      again_{std::make_unique<Again>(*this)} {}

Results::~Results() { *alive_ = false; }

RequestRow Results::row_of(PendingResult const& result, WallTime at) {
    RequestRow row{.id = result.id,
                   .owner = result.owner,
                   .form = std::string{form_name(result.form)},
                   .state = "pending",
                   .error = result.error,
                   .category = result.category,
                   .size = static_cast<std::int64_t>(result.size),
                   .at = at};
    if (result.state != State::pending) row.state = result.error.empty() ? "done" : "failed";
    return row;
}

void Results::add(std::string id, Form form, std::string owner) {
    TINKXX_ASSERT_LOOP(scheduler_);
    auto& result = results_[id];
    result = {.id = std::move(id), .form = form, .owner = std::move(owner)};
    ++pending_;
}

void Results::add_sample(std::string id, std::string owner, std::int64_t clone, std::string row,
                         Store::Written accepted) {
    auto& result = results_[id];
    result = {.id = id, .form = Form::sample, .owner = std::move(owner), .clone = clone};
    ++pending_;
    ++pending_samples_;
    result.unaccepted.emplace();
    result.unaccepted->push_back(std::move(accepted));
    store_.write({{Table::request, id, std::move(row)}}, [this, id](Result<void> const& written) {
        auto const found = results_.find(id);
        if (found == results_.end() || !found->second.unaccepted) return;
        auto waiting = *std::exchange(found->second.unaccepted, std::nullopt);
        if (!written) drop(id, written.error());
        for (auto& one : waiting) one(written);
    });
}

void Results::when_accepted(std::string const& id, Store::Written accepted) {
    auto const found = results_.find(id);
    if (found == results_.end() || !found->second.unaccepted) return accepted({});
    found->second.unaccepted->push_back(std::move(accepted));
}

void Results::restore(RequestRow const& row) {
    auto const seq = row.id.substr(row.id.rfind(':') + 1);
    auto const clone = std::strtoll(seq.c_str(), nullptr, 10) / clone_stride;
    auto& result = results_[row.id];
    result = {.id = row.id,
              .form = form_of(row.form),
              .owner = row.owner,
              .clone = clone,
              .size = static_cast<std::size_t>(std::max<std::int64_t>(0, row.size)),
              .error = row.error,
              .category = row.category,
              .settled = scheduler_.now()};
    if (row.state == "pending") {
        ++pending_;
        if (result.form == Form::sample) ++pending_samples_;
        return;
    }
    result.state = row.state == "done" ? State::done : State::failed;
    settled_.push_back(row.id);
    ++unfetched_;
    announce(result);
}

bool Results::pending_sample(std::string const& id) const {
    auto const found = results_.find(id);
    return found != results_.end() && found->second.state == State::pending &&
           found->second.form == Form::sample;
}

void Results::complete(std::string const& id, std::string payload, std::vector<Change> more) {
    TINKXX_ASSERT_LOOP(scheduler_);
    auto const found = results_.find(id);
    if (found == results_.end() || found->second.state != State::pending) {
        store_.write(std::move(more));
        return;
    }
    auto& result = found->second;
    result.state = State::settling;
    result.size = payload.size();
    result.payload = std::make_shared<std::string const>(std::move(payload));
    memory_bytes_ += result.size;
    in_memory_.push_back(id);
    save(id, std::make_shared<std::vector<Change> const>(std::move(more)), {});
}

void Results::fail(std::string const& id, std::string error, ErrorCategory category,
                   Store::Written done) {
    TINKXX_ASSERT_LOOP(scheduler_);
    auto const found = results_.find(id);
    if (found == results_.end() || found->second.state != State::pending) {
        if (done) done({});
        return;
    }
    auto& result = found->second;
    result.state = State::settling;
    result.error = error.empty() ? "the request failed" : std::move(error);
    result.category = to_string(category);
    save(id, std::make_shared<std::vector<Change> const>(), std::move(done));
}

void Results::save(std::string const& id, std::shared_ptr<std::vector<Change> const> const& more,
                   Store::Written done) {
    auto const found = results_.find(id);
    if (found == results_.end() || found->second.state != State::settling) return;
    auto const& result = found->second;
    auto changes = *more;
    changes.push_back({Table::request, id, encode(row_of(result, scheduler_.wall()))});
    if (result.payload) {
        changes.push_back({.table = Table::result, .key = id, .shared = result.payload});
    }
    store_.write(std::move(changes),
                 [this, id, more, done = std::move(done)](Result<void> written) mutable {
                     if (written) {
                         settle(id);
                     } else if (auto const still = results_.find(id); still != results_.end()) {
                         still->second.unsaved = written.error().what();
                         unsaved_.emplace_back(id, more);
                         if (!again_->armed()) {
                             scheduler_.arm(*again_, scheduler_.now() + std::chrono::seconds{1},
                                            Precision::coarse);
                         }
                     }
                     if (done) done(std::move(written));
                 });
}

void Results::drop(std::string const& id, Error const& why) {
    auto const found = results_.find(id);
    if (found == results_.end()) return;
    auto const polls = std::move(found->second.polls);
    if (found->second.state == State::pending || found->second.state == State::settling) {
        --pending_;
        if (found->second.form == Form::sample) --pending_samples_;
    } else if (!found->second.fetched) {
        --unfetched_;
    }
    if (found->second.payload) memory_bytes_ -= found->second.size;
    results_.erase(found);
    // It may have been computed and written already.
    store_.write({{Table::request, id, std::nullopt}, {Table::result, id, std::nullopt}});
    if (forgotten) forgotten(id);
    for (auto const& poll : polls) {
        --waiting_;
        scheduler_.disarm(*poll);
        send_refusal(*poll->answer, {500, std::string{"retrieve_future: the request could not be "
                                                      "accepted: "} +
                                              why.what()});
    }
}

void Results::shrink_memory() {
    // Most are fetched and forgotten long before their turn comes.
    for (auto* const ids : {&in_memory_, &settled_}) {
        if (ids->size() <= 2 * results_.size() + 1000) continue;
        std::erase_if(*ids, [this](auto const& id) { return !results_.contains(id); });
    }
    while (memory_bytes_ > options_.memory_bytes && !in_memory_.empty()) {
        auto const found = results_.find(in_memory_.front());
        if (found != results_.end() && found->second.payload) {
            // One that is not safe yet must not be lost; the next round finds it again.
            if (found->second.state != State::done) return;
            found->second.payload.reset();
            memory_bytes_ -= found->second.size;
        }
        in_memory_.pop_front();
    }
}

void Results::settle(std::string const& id) {
    auto const found = results_.find(id);
    if (found == results_.end()) return;
    auto& result = found->second;
    if (result.state != State::settling) return;
    result.state = result.error.empty() ? State::done : State::failed;
    result.settled = scheduler_.now();
    result.unsaved.clear();
    settled_.push_back(id);
    ++unfetched_;
    --pending_;
    if (result.form == Form::sample) --pending_samples_;
    announce(result);
    for (auto const& poll : std::exchange(result.polls, {})) {
        --waiting_;
        scheduler_.disarm(*poll);
        deliver(result, *poll);
    }
    shrink_memory();
    if (unfetched_ > options_.most) {
        std::vector<Change> changes;
        forget_unfetched(changes);
        store_.write(std::move(changes));
    }
}

void Results::announce(PendingResult const& result) {
    if (result.form != Form::sample) return;
    auto& stream = streams_[{result.owner, result.clone}];
    stream.done.emplace_back(++cursor_, result.id);
    for (auto const& poll : std::exchange(stream.polls, {})) {
        --waiting_;
        scheduler_.disarm(*poll);
        send_completions(stream, poll->previous, *poll->answer);
    }
}

std::string Results::try_again(std::string const& id) const {
    auto note = why_waiting ? why_waiting(id) : QueueNote{};
    auto const found = results_.find(id);
    if (found != results_.end() && !found->second.unsaved.empty()) {
        note = {"paused_capacity",
                "the result is there and cannot be written: " + found->second.unsaved +
                    "; make room on the disk of the server"};
    }
    std::string body;
    wire::JsonOut json{body};
    json.open_object();
    json.member("type", "try_again");
    json.member("request_id", id);
    json.member("queue_state", note.state);
    if (!note.reason.empty()) json.member("queue_state_reason", note.reason);
    json.close_object();
    return body;
}

MaybeRefused Results::retrieve(wire::server::RetrieveFuture const& ask, bool protobuf,
                               std::shared_ptr<Answer> const& answer) {
    TINKXX_ASSERT_LOOP(scheduler_);
    if (fetched_bytes_ > options_.fetched_bytes || fetched_.size() > options_.most) {
        std::vector<Change> changes;
        forget_fetched(changes);
        store_.write(std::move(changes));
    }
    auto const found = results_.find(ask.request_id);
    if (found == results_.end()) {
        if (plausible && plausible(ask.request_id)) {
            return Refused{410, "retrieve_future: the result of " + ask.request_id +
                                    " is not kept any more, or the server was restarted before it "
                                    "was done; send the request again"};
        }
        return Refused{404, "retrieve_future: there is no request " +
                                ask.request_id.substr(0, 200) + "; it was never accepted here"};
    }
    auto& result = found->second;
    auto poll = std::make_shared<Poll>(*this, result.id, answer, protobuf, ask.allow_metadata_only);
    if (result.state == State::done || result.state == State::failed) {
        deliver(result, *poll);
        return {};
    }
    scheduler_.arm(*poll, scheduler_.now() + options_.poll_hold, Precision::coarse);
    ++waiting_;
    result.polls.push_back(poll);
    answer->on_gone([this, alive = std::weak_ptr<bool>{alive_}, id = result.id,
                     gone = std::weak_ptr<Poll>{poll}] {
        auto const living = alive.lock();
        if (!living || !*living) return;
        if (auto const still = gone.lock()) give_up(id, still.get());
    });
    return {};
}

void Results::give_up(std::string const& id, Poll* poll) {
    auto const found = results_.find(id);
    if (found == results_.end()) return;
    auto& polls = found->second.polls;
    auto const at =
        std::ranges::find_if(polls, [poll](auto const& one) { return one.get() == poll; });
    if (at == polls.end()) return;
    --waiting_;
    polls.erase(at);
}

void Results::deliver(PendingResult& result, Poll const& poll) {
    if (result.state == State::failed) {
        std::string body;
        wire::JsonOut json{body};
        json.open_object();
        json.member("error", result.error);
        json.member("category", result.category);
        json.close_object();
        fetched(result);
        return send_json(*poll.answer, std::move(body));
    }
    if (poll.metadata && result.size > options_.inline_result_bytes) {
        std::string body;
        wire::JsonOut json{body};
        json.open_object();
        json.member("status", "complete_metadata");
        json.member("response_payload_size", result.size);
        json.close_object();
        return send_json(*poll.answer, std::move(body));
    }
    if (result.payload) return send(result, poll, result.payload);
    // Of an earlier life of the server.
    store_.find(Table::result, result.id,
                [this, id = result.id, answer = poll.answer,
                 protobuf = poll.protobuf](Result<std::optional<std::string>> read) {
                    auto const still = results_.find(id);
                    if (!read) {
                        return send_refusal(
                            *answer, {500, "retrieve_future: the result of " + id +
                                               " could not be read: " + read.error().what()});
                    }
                    if (still == results_.end() || !*read) {
                        return send_refusal(
                            *answer, {410, "retrieve_future: the result of " + id +
                                               " could not be read; send the request again"});
                    }
                    Poll const late{*this, id, answer, protobuf, false};
                    send(still->second, late,
                         std::make_shared<std::string const>(**std::move(read)));
                });
}

void Results::send(PendingResult& result, Poll const& poll,
                   std::shared_ptr<std::string const> const& payload) {
    fetched(result);
    if (result.form == Form::json) return send_shared(poll.answer, "application/json", payload);
    if (poll.protobuf) return send_shared(poll.answer, "application/x-protobuf", payload);
    if (payload->size() <= options_.loop_bytes || !elsewhere) {
        return send_json(*poll.answer, as_json(result.form, *payload));
    }
    auto const made = std::make_shared<std::shared_ptr<std::string const>>();
    elsewhere([made, form = result.form,
               payload] { *made = std::make_shared<std::string const>(as_json(form, *payload)); },
              [made, answer = poll.answer] { send_shared(answer, "application/json", *made); });
}

void Results::fetched(PendingResult& result) {
    if (result.fetched) return;
    result.fetched = scheduler_.now();
    --unfetched_;
    fetched_.push_back(result.id);
    fetched_bytes_ += result.size;
}

void Results::completions(wire::server::RetrieveFutures const& ask,
                          std::shared_ptr<Answer> const& answer) {
    std::vector<Change> changes;
    for (auto const& id : ask.retrieved_request_ids) {
        auto const found = results_.find(id);
        if (found == results_.end() || found->second.owner != ask.sampling_session_id) continue;
        if (found->second.state == State::done || found->second.state == State::failed) {
            forget(id, changes);
        }
    }
    store_.write(std::move(changes));
    StreamKey const key{ask.sampling_session_id, ask.cloned_sampler_id};
    // How far a poller has come is its own affair: what it says changes nothing for others. One
    // that has seen more than there ever was (a clock was set back) begins anew.
    auto const seen = ask.prev_cursor > cursor_ ? std::int64_t{0} : ask.prev_cursor;
    auto& stream = streams_[key];
    if (!stream.done.empty() && stream.done.back().first > seen) {
        return send_completions(stream, seen, *answer);
    }
    auto poll = std::make_shared<CompletionPoll>(*this, key, seen, answer);
    scheduler_.arm(*poll, scheduler_.now() + options_.completion_hold, Precision::coarse);
    ++waiting_;
    stream.polls.push_back(poll);
    answer->on_gone([this, alive = std::weak_ptr<bool>{alive_}, key,
                     gone = std::weak_ptr<CompletionPoll>{poll}] {
        auto const living = alive.lock();
        if (!living || !*living) return;
        if (auto const still = gone.lock()) end_completion_poll(key, still.get());
    });
}

void Results::end_completion_poll(StreamKey const& key, CompletionPoll* poll) {
    auto const stream = streams_.find(key);
    if (stream == streams_.end()) return;
    auto& polls = stream->second.polls;
    auto const at =
        std::ranges::find_if(polls, [poll](auto const& one) { return one.get() == poll; });
    if (at == polls.end()) return;
    --waiting_;
    polls.erase(at);
    forget_stream_if_idle(key);
}

void Results::forget_stream_if_idle(StreamKey const& key) {
    auto const stream = streams_.find(key);
    if (stream == streams_.end()) return;
    if (stream->second.done.empty() && stream->second.polls.empty()) streams_.erase(stream);
}

void Results::send_completions(Stream const& stream, std::int64_t previous, Answer& answer) const {
    std::string body;
    wire::JsonOut json{body};
    json.open_object();
    json.key("completions");
    json.open_array();
    auto const news = std::ranges::upper_bound(stream.done, previous, {},
                                               &std::pair<std::int64_t, std::string>::first);
    for (auto at = news; at != stream.done.end(); ++at) {
        auto const& [cursor, id] = *at;
        previous = cursor;
        auto const found = results_.find(id);
        if (found == results_.end()) continue;  // fetched long ago
        bool const failed = found->second.state == State::failed;
        json.open_object();
        json.member("state", failed ? "failed" : "finished");
        json.member("request_id", id);
        if (!failed) json.member("response_payload_uncompressed_size", found->second.size);
        json.close_object();
    }
    json.close_array();
    json.member("cursor", previous);
    json.close_object();
    send_json(answer, std::move(body));
}

void Results::forget(std::string const& id, std::vector<Change>& changes) {
    auto const found = results_.find(id);
    if (found == results_.end()) return;
    auto const& result = found->second;
    if (result.fetched) {
        fetched_bytes_ -= result.size;
    } else {
        --unfetched_;
    }
    if (result.payload) memory_bytes_ -= result.size;
    StreamKey const key{result.owner, result.clone};
    results_.erase(found);
    changes.push_back({Table::request, id, std::nullopt});
    changes.push_back({Table::result, id, std::nullopt});
    if (forgotten) forgotten(id);
    auto const stream = streams_.find(key);
    if (stream == streams_.end()) return;
    auto& done = stream->second.done;
    if (++stream->second.gone * 2 < done.size()) return;
    std::erase_if(done, [this](auto const& one) { return !results_.contains(one.second); });
    stream->second.gone = 0;
    forget_stream_if_idle(key);
}

void Results::forget_fetched(std::vector<Change>& changes) {
    auto const now = scheduler_.now();
    while (!fetched_.empty()) {
        auto const id = fetched_.front();
        auto const found = results_.find(id);
        bool const there = found != results_.end() && found->second.fetched;
        if (there && now - *found->second.fetched < options_.fetched_keep &&
            fetched_bytes_ <= options_.fetched_bytes && fetched_.size() <= options_.most) {
            return;
        }
        fetched_.pop_front();
        if (there) forget(id, changes);
    }
}

void Results::forget_unfetched(std::vector<Change>& changes) {
    auto const now = scheduler_.now();
    while (!settled_.empty()) {
        auto const id = settled_.front();
        auto const found = results_.find(id);
        bool const there = found != results_.end() && !found->second.fetched;
        if (there && unfetched_ <= options_.most &&
            now - found->second.settled < options_.unfetched_keep) {
            return;
        }
        settled_.pop_front();
        if (there) forget(id, changes);
    }
}

void Results::sweep() {
    TINKXX_ASSERT_LOOP(scheduler_);
    std::vector<Change> changes;
    forget_fetched(changes);
    forget_unfetched(changes);
    store_.write(std::move(changes));
    shrink_memory();
}

}  // namespace tinkxx::local
