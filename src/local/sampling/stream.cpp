#include "local/api/json.hpp"
#include "local/sampling/sampling.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace tinkxx::local {

using wire::JsonOut;

namespace {

void send_event(Answer& answer, std::string const& data) { answer.data("data: " + data + "\n\n"); }

/// The text that is certain with one more token: part of a character is no text.
using TextSoFar = std::function<std::string(std::int32_t token)>;

TextSoFar text_so_far(BaseModel const& base) {
    if (base.texts) {
        auto decoder = std::make_shared<text::StreamDecoder>(
            base.texts->tokenizer().stream_decoder({.skip_special = true}));
        return [decoder](std::int32_t token) { return decoder->push(Token{token}); };
    }
    if (!base.source.byte_level) return {};
    return [](std::int32_t token) {
        return token >= 0 && token < 128 ? std::string(1, static_cast<char>(token)) : std::string{};
    };
}

void send_token(Answer& answer, std::int32_t token, std::int64_t index, float logprob,
                TextSoFar const& text) {
    send_event(answer, json_object([&](JsonOut& json) {
                   auto const piece = text ? text(token) : std::string{};
                   if (!piece.empty()) json.member("token", piece);
                   json.member("token_id", token);
                   json.member("index", index);
                   json.member("logprob", static_cast<double>(logprob));
               }));
}

void send_end(Answer& answer, std::shared_ptr<SampleJob> const& sample,
              Result<void> const& outcome) {
    send_event(answer, json_object([&](JsonOut& json) {
                   if (!outcome || !sample) {
                       json.member("error",
                                   outcome ? "the sample is gone" : outcome.error().what());
                       return;
                   }
                   auto const& sequence = sample->result.sequences.at(0);
                   json.member("finish_reason",
                               sequence.cause == engine::StopCause::stop ? "stop" : "length");
                   json.member("total_tokens", sequence.tokens.size());
               }));
    answer.done();
}

}  // namespace

MaybeRefused Sampling::stream_sample(Ask& ask) {
    return read(
        ask, [this](Ask& asked, SampleRead read) { return submit_stream(asked, std::move(read)); });
}

MaybeRefused Sampling::submit_stream(Ask& ask, SampleRead read) {
    auto& services = uses_.services;
    if (auto no = services.check_accepting("stream_sample")) return no;
    if (read.request.options.num_samples != 1) {
        return Refused{400, "stream_sample: num_samples is " +
                                std::to_string(read.request.options.num_samples) +
                                "; a stream has one sample"};
    }
    auto const prepared = prepare("stream_sample", std::move(read));
    if (!prepared) return prepared.refused();
    auto const& sample = *prepared;
    if (auto no = admit("stream_sample", *sample)) return no;
    auto const& answer = ask.answer;
    sample->id = "stream:" + services.fresh_id();
    sample->on_token = [answer, count = std::make_shared<std::int64_t>(0),
                        text = text_so_far(uses_.bases.all().at(sample->base))](
                           std::size_t /*sample*/, std::int32_t token, float logprob) {
        send_token(*answer, token, (*count)++, logprob, text);
    };
    sample->on_done = [answer,
                       result = std::weak_ptr<SampleJob>{sample}](Result<void> const& outcome) {
        send_end(*answer, result.lock(), outcome);
    };
    answer->head(200, {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-cache"}},
                 std::nullopt);
    begin(*sample);
    answer->on_gone([this, alive = std::weak_ptr<bool>{services.alive}, id = sample->id] {
        auto const living = alive.lock();
        if (living && *living) cancel(id);
    });
    services.counters.add("tinkxx_sample_requests_total", {});
    compute(sample);
    return {};
}

}  // namespace tinkxx::local
