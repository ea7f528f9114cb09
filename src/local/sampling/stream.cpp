#include "local/api/json.hpp"
#include "local/core/bodies.hpp"
#include "local/sampling/sample_request.hpp"

namespace tinkxx::local {

using wire::JsonOut;

namespace {

void send_event(Answer& answer, std::string const& data) { answer.data("data: " + data + "\n\n"); }

}  // namespace

void Core::stream_sample(Ask& ask) {
    read_sample(ask,
                [this](Ask& asked, SampleRead read) { submit_stream(asked, std::move(read)); });
}

void Core::submit_stream(Ask& ask, SampleRead read) {
    if (!accepting()) throw Refused{503, "stream_sample: the server is stopping"};
    if (read.request.options.num_samples != 1) {
        throw Refused{400, "stream_sample: num_samples is " +
                               std::to_string(read.request.options.num_samples) +
                               "; a stream has one sample"};
    }
    auto sample = prepare("stream_sample", std::move(read));
    admit_sample("stream_sample", *sample);
    auto const& answer = ask.answer;
    sample->id = "stream:" + fresh_id();
    bool const bytes = bases_.at(sample->base).source.byte_level;
    auto const count = std::make_shared<std::int64_t>(0);
    sample->on_token = [answer, count, bytes](std::size_t /*sample*/, std::int32_t token,
                                              float logprob) {
        send_event(*answer, json_object([&](JsonOut& json) {
            // Half of a character is no text.
            if (bytes && token >= 0 && token < 128) {
                json.member("token", std::string(1, static_cast<char>(token)));
            }
            json.member("token_id", token);
            json.member("index", (*count)++);
            json.member("logprob", static_cast<double>(logprob));
        }));
    };
    sample->on_done = [answer, result = std::weak_ptr<SampleJob>{sample}](Result<void> outcome) {
        auto const done = result.lock();
        send_event(*answer, json_object([&](JsonOut& json) {
            if (!outcome || !done) {
                json.member("error", outcome ? "the sample is gone" : outcome.error().what());
                return;
            }
            auto const& sequence = done->result.sequences.at(0);
            json.member("finish_reason",
                        sequence.cause == engine::StopCause::stop ? "stop" : "length");
            json.member("total_tokens", sequence.tokens.size());
        }));
        answer->done();
    };
    answer->head(200, {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-cache"}},
                 std::nullopt);
    begin_sample(*sample, "stream");
    answer->on_gone([this, alive = std::weak_ptr<bool>{alive_}, id = sample->id] {
        auto const living = alive.lock();
        if (living && *living) cancel_sample(id);
    });
    counters_.add("tinkxx_sample_requests_total", {});
    compute(sample);
}

}  // namespace tinkxx::local
