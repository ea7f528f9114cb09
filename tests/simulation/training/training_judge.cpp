#include "simulation/training/training_judge.hpp"

#include <algorithm>
#include <cmath>

namespace tinkxx::simulation {

namespace {

using What = TrainCall::What;

std::string what_of(TrainCall const& call) { return "call " + std::to_string(call.id); }

/// Whether numbers of float32 are the same.
bool same(TensorData const& tensor, std::vector<float> const& numbers) {
    auto const* data = std::get_if<std::vector<float>>(&tensor.data);
    return data != nullptr && *data == numbers;
}

}  // namespace

std::vector<Stretch> stretches(std::vector<std::int64_t> const& bytes, std::int64_t most_items,
                               std::int64_t most_bytes) {
    std::vector<Stretch> all;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bool const full = all.empty() ||
                          static_cast<std::int64_t>(all.back().count) == most_items ||
                          sum + bytes[i] > most_bytes;
        if (full) {
            all.push_back({.first = i});
            sum = 0;
        }
        ++all.back().count;
        sum += bytes[i];
    }
    return all;
}

std::int64_t json_estimate(SentDatum const& datum) {
    auto numbers = datum.tokens.size();
    for (auto const& [name, tensor] : datum.inputs) numbers += tensor.values.size();
    return static_cast<std::int64_t>(numbers) * 10;
}

std::int64_t proto_estimate(SentDatum const& datum) {
    auto bytes = datum.tokens.size() * 4;
    for (auto const& [name, tensor] : datum.inputs) {
        bytes += tensor.values.size() * (tensor.integers ? 8 : 4);
    }
    return static_cast<std::int64_t>(bytes);
}

// What goes over the wire ------------------------------------------------------------------------

void TrainJudge::on_submit(TrainCall* call, ReadRequest const& read, std::string const& body,
                           TimePoint now, Rules rules) {
    auto const seq_id = read.request.seq_id;
    auto const [at, first] = sent_.try_emplace(seq_id);
    auto& sent = at->second;
    bool fresh = first;
    if (!fresh && sent.call != call && sent.call != nullptr && !sent.accepted) {
        // The service refused it to the other one, which is over, or complains.
        overtakes(*sent.call, now, seq_id);
        sent = {};
        fresh = true;
    }
    if (fresh) {
        sent.call = call;
        sent.may_be_done_twice = rules.may_be_done_twice;
        on_first(sent, read, now, rules.parallel);
    } else if (sent.call != call) {
        problem("two calls have the number " + name(seq_id));
    } else {
        sent.repeated = true;
        on_repeat(sent, read, body);
    }
    sent.body = body;
    sent.protobuf = read.protobuf;
    sent.open = true;
    if (call == nullptr || !call->gone_before(now)) return;
    if (fresh) problem("a submit for a call that is over: " + name(seq_id));
    // What the service may have is sent again on behalf of those behind it.
    sent.fills_gap = true;
}

void TrainJudge::on_first(Sent& sent, ReadRequest const& read, TimePoint now, bool parallel) {
    auto const seq_id = read.request.seq_id;
    if (sent.call == nullptr) {  // the load of a model that is made of a checkpoint
        if (seq_id != 1 || read.request.kind != TrainKind::load_state) {
            problem("nobody made this call: " + name(seq_id));
        }
        sent.wanted = read.request;
        return;
    }
    sent.wanted = wanted(*sent.call, read.request, sent);
    if (!(sent.wanted == read.request)) {
        problem("not what the caller gave: " + name(seq_id));
    }
    check_order(sent, seq_id, now);
    if (!sent.call->pass()) return;
    check_cut(sent, read.request);
    check_chunks(sent, seq_id, parallel);
}

void TrainJudge::on_repeat(Sent const& sent, ReadRequest const& read, std::string const& body) {
    auto const which = name(read.request.seq_id);
    if (sent.open) problem("two submits at once: " + which);
    if (sent.accepted) problem("an accepted submit was made again: " + which);
    if (!(sent.wanted == read.request)) problem("a repeat asks for something else: " + which);
    if (sent.protobuf == read.protobuf && sent.body != body) {
        problem("a repeat has another body: " + which);
    }
}

/// What a request of this call must be; finds which part of the call it is.
TrainRequest TrainJudge::wanted(TrainCall const& call, TrainRequest const& got, Sent& sent) {
    TrainRequest made;
    made.model_id = id_;
    made.seq_id = got.seq_id;
    switch (call.what) {
        case What::forward:
        case What::forward_backward:
        case What::custom: {
            bool const back = got.kind == TrainKind::forward_backward;
            bool const custom = call.what == What::custom;
            sent.pass = custom && back ? 1 : 0;
            made.kind = call.what == What::forward || (custom && !back)
                            ? TrainKind::forward
                            : TrainKind::forward_backward;
            made.loss = call.loss;
            made.config = call.config;
            auto const& data = sent.pass == 1 ? call.backward : call.data;
            auto const first = got.data.empty() ? -1 : got.data.front().place();
            sent.stretch = {.first = static_cast<std::size_t>(std::max<std::int64_t>(first, 0)),
                            .count = got.data.size()};
            auto const end = std::min(sent.stretch.first + sent.stretch.count, data.size());
            for (auto i = sent.stretch.first; i < end; ++i) made.data.push_back(data[i]);
            break;
        }
        case What::step:
            made.kind = TrainKind::optim_step;
            made.adam = call.adam;
            break;
        case What::save:
            made.kind = TrainKind::save_state;
            made.name = call.name;
            made.overwrite = call.overwrite;
            break;
        case What::save_sampler:
            made.kind = TrainKind::save_for_sampler;
            made.name = call.name;
            break;
        case What::save_external:
            made.kind = TrainKind::save_external;
            made.name = call.name;
            break;
        case What::ephemeral:
            made.kind = TrainKind::save_for_sampler;
            made.sampling_session_seq = got.sampling_session_seq;  // any, but always the same
            break;
        case What::load:
            made.kind = TrainKind::load_state;
            made.name = call.name;
            made.optimizer = call.optimizer;
            break;
        case What::unload:
            made.kind = TrainKind::unload;
            break;
        case What::create:
        case What::info:
            break;
    }
    return made;
}

/// R-TRAIN-20: as one of the encodings wants it, and the same for both passes of a custom loss.
void TrainJudge::check_cut(Sent const& sent, TrainRequest const& got) {
    auto& cuts = sent.call->cuts;
    std::erase_if(cuts, [&](std::vector<Stretch> const& cut) {
        return std::ranges::find(cut, sent.stretch) == cut.end();
    });
    if (cuts.empty()) problem("data are cut in the wrong place: " + name(got.seq_id));
    for (auto const& [seq_id, other] : sent_) {
        if (&other == &sent || other.call != sent.call || other.pass != sent.pass) continue;
        if (other.stretch.first == sent.stretch.first) {
            problem("the same data have two numbers: " + name(seq_id) + " and " + name(got.seq_id));
        } else if ((other.stretch.first < sent.stretch.first) != (seq_id < got.seq_id)) {
            problem("chunks in the wrong order: " + name(seq_id) + " and " + name(got.seq_id));
        }
    }
}

/// R-TRAIN-11: whoever was asked for before is submitted, or never will be.
void TrainJudge::check_order(Sent& sent, std::int64_t seq_id, TimePoint now) {
    auto const& call = *sent.call;
    for (auto const& [number, other] : sent_) {
        if (other.call == nullptr || other.call == &call || seq_id == 0 || number == 0) continue;
        if ((other.call->place < call.place) == (number < seq_id)) continue;
        sent.fills_gap = true;
        overtakes(*other.call, now, seq_id);
    }
    for (auto const& [number, other] : sent_) {
        if (!other.open || other.call == nullptr || other.call == &call) continue;
        problem(name(seq_id) + " is submitted while " + name(number) + " is");
    }
    for (auto const* before : program_) {
        if (before == &call) break;
        if (before->numbered() && !before->submitted()) overtakes(*before, now, seq_id);
    }
}

/// Only who has come to nothing is overtaken.
void TrainJudge::overtakes(TrainCall const& call, TimePoint now, std::int64_t seq_id) {
    if (call.over || call.cancelled) return;
    overtaken_.push_back({.call = &call, .when = now, .by = name(seq_id)});
}

/// R-TRAIN-32.
void TrainJudge::check_chunks(Sent const& sent, std::int64_t seq_id, bool parallel) {
    auto const& call = *sent.call;
    auto const accepted = call.accepted[sent.pass];
    auto const& stretch = sent.stretch;
    bool const whole = stretch.count == call.units();
    if (sent.pass == 1 && call.accepted[0] != call.units()) {
        problem("a backward pass before the forward pass: " + name(seq_id));
    }
    if (whole) return;
    if (!parallel) {
        if (accepted != stretch.first) problem("a chunk out of turn: " + name(seq_id));
        return;
    }
    if (stretch.first == 0) {
        if (accepted + stretch.count != call.units()) {
            problem("the first chunk is not the last: " + name(seq_id));
        }
        return;
    }
    bool const begun = std::ranges::any_of(sent_, [&](auto const& each) {
        auto const& other = each.second;
        return other.call == &call && other.pass == sent.pass && other.stretch.first == 0 &&
               &other != &sent;
    });
    if (begun) problem("a chunk behind the first: " + name(seq_id));
}

void TrainJudge::on_answer(std::int64_t seq_id, int status) {
    auto& sent = sent_[seq_id];
    sent.open = false;
    if (status == 0 || status == 408 || status >= 500) sent.in_doubt = true;
    if (status < 200 || status >= 300) return;
    sent.accepted = true;
    if (sent.call != nullptr) sent.call->accepted[sent.pass] += sent.stretch.count;
}

void TrainJudge::on_withdrawn(std::int64_t seq_id) {
    auto& sent = sent_[seq_id];
    sent.open = false;
    sent.in_doubt = true;
}

TrainCall const* TrainJudge::next_to_submit() const {
    for (auto const& [seq_id, sent] : sent_) {
        if (!sent.accepted && (sent.open || sent.in_doubt)) return nullptr;
    }
    for (auto const* call : program_) {
        if (!call->numbered() || call->over || call->cancelled || call->submitted()) continue;
        bool const begun =
            std::ranges::any_of(sent_, [&](auto const& each) { return each.second.call == call; });
        return begun ? nullptr : call;
    }
    return nullptr;
}

void TrainJudge::on_over(TrainCall const& call, TimePoint now) {
    std::erase_if(overtaken_, [&](Overtaken const& each) {
        if (each.call != &call) return false;
        // Its turn went on at the very moment when it came to nothing.
        if (call.succeeded || each.when != now) {
            problem(each.by + " overtook " + what_of(call));
        }
        return true;
    });
}

// What was done ----------------------------------------------------------------------------------

void TrainJudge::verify(TrainedModel const& model, bool steps_have_metrics) {
    for (auto const& each : overtaken_) {
        if (!each.call->over) problem(each.by + " overtook " + what_of(*each.call));
    }
    auto state = model.born;
    std::int64_t last = 0;
    for (auto const& applied : model.log) {
        auto const& got = applied.request;
        auto const found = sent_.find(got.seq_id);
        if (found == sent_.end()) {
            problem("done, but never sent: " + name(got.seq_id));
            continue;
        }
        auto& sent = found->second;
        if (++sent.done > 1 && !sent.may_be_done_twice) problem("done twice: " + name(got.seq_id));
        // The number of an unload is not told, and what is done twice comes when it comes: of two
        // the first may have failed.
        bool const late =
            sent.done > 1 || sent.fills_gap || (sent.repeated && sent.may_be_done_twice);
        if (got.kind != TrainKind::unload && !late) {
            if (got.seq_id <= last) problem("done in the wrong order: " + name(got.seq_id));
            last = got.seq_id;
        }
        if (!(got == sent.wanted)) problem("done with something else: " + name(got.seq_id));
        if (sent.wanted.pass()) {
            sent.result = apply_pass(state, sent.wanted);
        } else if (sent.wanted.kind == TrainKind::optim_step) {
            sent.step = apply_step(state, sent.wanted);
        } else if (sent.wanted.kind == TrainKind::load_state) {
            state = applied.state;
        }
        sent.weights = state.weights;
        if (!(state == applied.state)) problem("another state than by the calls: " + name(last));
    }
    if (!(state == model.state)) problem("another state in the end than by the calls: " + id_);
    for (auto const* call : program_) {
        if (call->succeeded) check_result(*call, steps_have_metrics);
    }
}

void TrainJudge::check_result(TrainCall const& call, bool steps_have_metrics) {
    auto const which = what_of(call);
    if (!call.numbered()) return;
    std::vector<Sent const*> parts;
    for (auto const& [seq_id, sent] : sent_) {
        if (sent.call != &call) continue;
        parts.push_back(&sent);
        if (sent.done == 0) problem(which + " succeeded, but was not done: " + name(seq_id));
    }
    if (!call.submitted()) return problem(which + " succeeded, but was not all accepted");
    switch (call.what) {
        case What::forward:
        case What::forward_backward:
        case What::custom:
            return check_outputs(call, parts);
        case What::step: {
            MetricValues const told{{"state:unique", parts.front()->step}};
            bool const fits = steps_have_metrics ? call.step.metrics == told : !call.step.metrics;
            if (!fits) problem("not the result of the step: " + which);
            return;
        }
        case What::save:
        case What::save_sampler:
        case What::save_external: {
            auto const kind = call.what == What::save           ? "weights"
                              : call.what == What::save_sampler ? "sampler_weights"
                                                                : "external_weights";
            if (call.path != "tinker://" + id_ + "/" + kind + "/" + call.name) {
                problem("saved somewhere else: " + which);
            }
            break;
        }
        case What::load:
            if (call.path != call.name) problem("loaded from somewhere else: " + which);
            return;
        default:
            break;
    }
    if (call.drawn && *call.drawn != drawn_tokens(parts.front()->weights)) {
        problem("a sample of other weights: " + which);
    }
}

void TrainJudge::check_outputs(TrainCall const& call, std::vector<Sent const*> const& parts) {
    std::array<std::vector<std::vector<float>>, 2> logprobs;
    MetricValues metrics;
    std::size_t chunks = 0;
    double digest = 0;
    for (auto const* part : parts) {
        auto& into = logprobs[part->pass];
        into.insert(into.end(), part->result.logprobs.begin(), part->result.logprobs.end());
        if (part->pass + 1 != call.passes()) continue;
        auto const& got = part->result.metrics;
        metrics["loss:sum"] += got.find("loss:sum")->second;
        metrics["data:sum"] += got.find("data:sum")->second;
        digest += got.find("digest:hash2")->second;
        auto const unique = chunks == 0 ? "state:unique" : "state:unique_" + std::to_string(chunks);
        metrics[unique] = got.find("state:unique")->second;
        ++chunks;
    }
    metrics["digest:hash2"] = digest;
    auto const mean = metrics["loss:sum"] / static_cast<double>(call.units());
    auto got = call.output.metrics;
    if (auto const told = got.find("loss:mean");
        told == got.end() || std::abs(told->second - mean) > 1e-9 * (1 + std::abs(mean))) {
        problem("another mean: " + what_of(call));
    }
    got.erase("loss:mean");
    if (call.what == What::custom) {
        metrics["surrogate_loss:sum"] = metrics["loss:sum"];
        metrics["loss:sum"] = call.value.loss;
        for (auto const& [name, value] : call.value.metrics) metrics[name] = value;
        if (call.seen != logprobs[0]) {
            problem("a loss function saw other numbers: " + what_of(call));
        }
    }
    if (got != metrics) problem("other metrics: " + what_of(call));
    auto const& outputs = call.output.loss_fn_outputs;
    auto const& wanted = logprobs[call.passes() - 1];
    bool fits = outputs.size() == wanted.size();
    for (std::size_t i = 0; fits && i < outputs.size(); ++i) {
        auto const found = outputs[i].find("logprobs");
        fits = found != outputs[i].end() && same(found->second, wanted[i]);
    }
    if (!fits) problem("other outputs: " + what_of(call));
}

/// R-TRAIN-10: no number is left out, but for those that nobody came to fill: of a call whose
/// first chunk was to go last.
void TrainJudge::verify_numbers() {
    std::int64_t next = 1;
    std::optional<std::int64_t> left_out;
    for (auto const& [seq_id, sent] : sent_) {
        if (seq_id == 0) continue;  // an unload
        if (seq_id != next && !left_out) left_out = next;
        next = seq_id + 1;
        if (left_out && sent.stretch.first == 0) {
            problem("the number " + name(*left_out) + " was left out, and " + name(seq_id) +
                    " sent");
        }
    }
}

}  // namespace tinkxx::simulation
