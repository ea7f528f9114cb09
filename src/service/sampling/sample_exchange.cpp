#include "service/sampling/sample_exchange.hpp"

#include "base/common/prefetch.hpp"
#include "base/loop/loop_rule.hpp"
#include "wire/session/result_answer.hpp"

#include <utility>

namespace tinkxx::service {
namespace {

// Longer ones are written, or read, where they do not keep the loop from others.
constexpr std::int64_t encode_on_loop_bytes = std::int64_t{32} * 1024;
constexpr std::size_t decode_on_loop_bytes = std::size_t{64} * 1024;
constexpr std::size_t decode_json_on_loop_bytes = std::size_t{16} * 1024;

std::shared_ptr<std::string const> encode_tail(SampleOrder const& order, bool stability,
                                               wire::Members members) {
    return std::make_shared<std::string const>(
        wire::encode_sample_tail(order.prompt.chunks(), order.settings->params,
                                 order.settings->options, stability, members));
}

Result<SampleResponse> decode_body(std::string_view body, bool protobuf) {
    return protobuf ? wire::decode_sample_proto(body) : wire::decode_sample_json(body);
}

}  // namespace

void SampleExchange::on_coming() const noexcept { base::prefetch(&owner_, owner_bytes_); }

// Written and submitted ---------------------------------------------------------------------------

bool SampleExchange::write(wire::Members members) {
    TINKXX_ASSERT_LOOP(http().scheduler());
    if (tail_ && members_ == members) return true;
    members_ = members;
    bool const stability = sampler_.record_stability_info();
    if (order_.prompt_bytes <= encode_on_loop_bytes) {
        tail_ = encode_tail(order_, stability, members);
        return true;
    }
    // The call keeps the order, which is left alone until the tail comes back; this may be gone.
    http().runtime().run_callback(
        [this, &owner = owner_, &order = order_, &scheduler = http().scheduler(),
         handle = owner_.handle(), stability, members] {
            auto tail = encode_tail(order, stability, members);
            scheduler.post([this, &owner, handle, tail = std::move(tail)]() mutable {
                if (!owner.goes_on()) return;
                tail_ = std::move(tail);
                owner.on_written();
            });
        },
        [&owner = owner_, handle = owner_.handle()](Error error) {
            if (owner.goes_on()) owner.on_failure(error);
        });
    return false;
}

void SampleExchange::submit(std::int64_t seq_id, Repeat repeat) {
    TINKXX_ASSERT_LOOP(http().scheduler());
    auto order = core().submit_order();
    if (auto const& metadata = order_.call().metadata; !metadata.empty()) {
        auto own = *order;
        own.metadata = metadata;
        order = std::make_shared<HttpOrder const>(std::move(own));
    }
    HttpParcel parcel;
    parcel.headers = order_.headers();
    parcel.body.head =
        std::make_shared<std::string const>(wire::encode_sample_head(sampler_.id(), seq_id));
    parcel.body.tail = tail_;
    submit_started_ = http().scheduler().now();
    if (stalled_since_ == TimePoint{}) stalled_since_ = submit_started_;
    ServiceRequest::Listener& listener = *this;
    request_.emplace<ServiceRequest>(core().context(), listener)
        .start(std::move(order), std::move(parcel), repeat);
    owner_.on_stage(Stage::submitting);
}

void SampleExchange::on_response(HttpResponse response) {
    // By the attempt that was accepted: the loop around it may have begun before the refusal.
    core().gate().accepted(sent_at());
    auto answer = wire::decode_submitted(response.body);
    if (!answer) return owner_.on_failure(answer.error());
    if (answer->result.empty()) return accepted(*std::move(answer));
    // Some servers answer at once (R-SAMP-03).
    auto inlined = wire::decode_sample_json(answer->result);
    if (owner_.on_accepted()) decoded(std::move(inlined), false);
}

void SampleExchange::on_error(Error error) {
    if (poll() != nullptr) return owner_.on_failure(error);
    owner_.on_refusal(error);
}

// Waited for and fetched --------------------------------------------------------------------------

void SampleExchange::accepted(wire::Submitted submitted) {
    request_id_ = std::move(submitted.request_id);
    stalled_since_ = {};
    if (submitted.sample_sequence_ids) {
        sequence_ids_ = std::make_unique<std::vector<std::string> const>(
            *std::move(submitted.sample_sequence_ids));
    }
    drop_request();
    tail_.reset();  // made again for another attempt, which few need
    if (!owner_.on_accepted()) return;
    if (auto* const completions = sampler_.completions()) {
        owner_.on_stage(Stage::waiting_for_completion);
        return completions->wait(request_.emplace<Completion>(*this), request_id_);
    }
    fetch(0);
}

void SampleExchange::fetch(std::int64_t known_bytes) {
    ResultOrder order;
    order.request_id = request_id_;
    order.request_type = "Sample";
    order.protobuf_wanted = true;
    order.submit_roundtrip = http().scheduler().now() - submit_started_;
    order.known_payload_bytes = known_bytes;
    if (order_.extras) {
        order.extras = std::make_shared<RequestExtras const>(
            RequestExtras{.headers = order_.headers(), .metadata = order_.call().metadata});
    }
    ResultPoll::Listener& listener = *this;
    request_.emplace<ResultPoll>(core().results(), listener).start(std::move(order));
    owner_.on_stage(Stage::polling);
}

void SampleExchange::report_queue(QueueState state, std::string const& reason) {
    TINKXX_ASSERT_LOOP(http().scheduler());
    auto now = std::make_unique<QueueStanding const>(QueueStanding{state, reason});
    QueueStateEvent told;
    told.state = state;
    told.reason = reason;
    told.request_id = request_id_;
    told.request_type = "Sample";
    told.owner_id = sampler_.id();
    told.changed = !queue_ || *queue_ != *now;
    told.metadata = sampler_.metadata(order_.call().metadata);
    queue_ = std::move(now);
    sampler_.reporter().tell(http(), order_.call(), std::move(told));
}

void SampleExchange::give_up_result() {
    if (poll() == nullptr || request_id_.empty()) return;
    if (auto* const completions = sampler_.completions()) completions->retrieved(request_id_);
}

void SampleExchange::drop() noexcept {
    drop_request();
    request_id_.clear();
    sequence_ids_.reset();
}

// Read --------------------------------------------------------------------------------------------

void SampleExchange::on_result(RetrievedResult result) {
    if (auto* const completions = sampler_.completions()) completions->retrieved(request_id_);
    decode(std::move(result));
}

void SampleExchange::decode(RetrievedResult result) {
    if (result.size <= (result.protobuf ? decode_on_loop_bytes : decode_json_on_loop_bytes)) {
        auto response = decode_body(result.view(), result.protobuf);
        http().give_text(std::move(result.body));
        return decoded(std::move(response), result.protobuf);
    }
    drop_request();
    owner_.on_stage(Stage::decoding);
    http().runtime().run_callback(
        [this, &owner = owner_, &scheduler = http().scheduler(), handle = owner_.handle(),
         result = std::move(result)]() mutable {
            auto const read = std::move(result);  // which is long, and gone when this returns
            auto response = decode_body(read.view(), read.protobuf);
            scheduler.post([this, &owner, handle, response = std::move(response),
                            protobuf = read.protobuf]() mutable {
                if (owner.goes_on()) decoded(std::move(response), protobuf);
            });
        },
        [&owner = owner_, handle = owner_.handle()](Error error) {
            if (owner.goes_on()) owner.on_failure(error);
        });
}

void SampleExchange::decoded(Result<SampleResponse> response, bool protobuf) {
    if (response) {
        auto const length = order_.prompt_length;
        auto completed =
            wire::complete_sample(*std::move(response), sequence_ids_.get(),
                                  length < 0 ? std::nullopt : std::optional{length},
                                  order_.settings->options, sampler_.record_stability_info());
        if (completed) {
            sampler_.warn_unanswered(completed->unanswered);
            response = std::move(completed->response);
        } else {
            response = completed.error();
        }
    }
    if (!response) {
        sampler_.report_undecodable(response.error(), request_id_, protobuf);
        return owner_.on_failure(response.error());
    }
    owner_.on_sample(*std::move(response));
}

}  // namespace tinkxx::service
