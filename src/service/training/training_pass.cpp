#include "service/training/training_pass.hpp"

#include "math/check.hpp"
#include "service/passes/combining.hpp"
#include "service/training/training_call.hpp"
#include "wire/training/training.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace tinkxx::service {
namespace {

/// Whether an encoding has no words for part of a datum (R-TRAIN-37, R-TRAIN-38).
bool beyond(Datum const& datum, wire::Encoding encoding) {
    if (encoding == wire::Encoding::json) {
        return !datum.model_input_spans.empty() || !datum.loss_fn_input_spans.empty();
    }
    return std::ranges::any_of(datum.model_input.chunks, [](ModelInputChunk const& chunk) {
        return std::holds_alternative<ImageAssetPointerChunk>(chunk);
    });
}

struct Written {
    std::string_view model_id{};
    std::span<Datum const> data{};
    Loss const* loss{nullptr};
    Direction direction{};
    wire::Compression compression{};
};

Result<SubmitOrder> write_chunk(Written const& pass, Chunk const& chunk, std::int64_t seq_id,
                                wire::Encoding encoding) {
    bool const forward_only = pass.direction == Direction::forward;
    auto body = wire::encode_forward_backward({.model_id = pass.model_id,
                                               .seq_id = seq_id,
                                               .data = pass.data.subspan(chunk.first, chunk.count),
                                               .loss = pass.loss,
                                               .forward_only = forward_only},
                                              encoding, pass.compression);
    if (!body) return body.error();
    SubmitOrder order;
    order.path = wire::forward_backward_path(encoding, forward_only);
    order.request_type = forward_only ? "Forward" : "ForwardBackward";
    order.body = std::make_shared<std::string const>(std::move(body->bytes));
    order.content_type = body->content_type;
    order.content_encoding = body->content_encoding;
    order.protobuf_result = true;
    order.bytes = chunk.bytes;
    order.step = true;
    order.encoding = encoding;
    order.seq_id = seq_id;
    order.renumber = [encoding, compression = pass.compression](std::string const& written,
                                                                std::int64_t number) {
        return wire::renumber_forward_backward(written, encoding, compression, number);
    };
    return order;
}

/// Writes chunks anew, long after the call that gave the data has returned.
class Rewriter {
public:
    Rewriter(TrainingModel const& model, std::span<Datum const> data, Loss loss,
             Direction direction, Cut const& cut)
        : model_id_{model.id()},
          compression_{model.compression()},
          data_{data.begin(), data.end()},
          loss_{std::move(loss)},
          direction_{direction},
          chunks_{cut.chunks} {
        for (auto& datum : data_) datum.loss_fn_inputs.own();
    }
    [[nodiscard]] Result<SubmitOrder> write(std::size_t chunk, wire::Encoding encoding,
                                            std::int64_t seq_id) const {
        return write_chunk({model_id_, data_, &loss_, direction_, compression_}, chunks_[chunk],
                           seq_id, encoding);
    }

private:
    std::string model_id_;
    wire::Compression compression_;
    std::vector<Datum> data_;
    Loss loss_;
    Direction direction_;
    std::vector<Chunk> chunks_;
};

}  // namespace

Result<Cut> cut(TrainingModel const& model, std::span<Datum const> data, Loss const& loss,
                Direction direction) {
    auto const encoding = model.encodings()->current();
    auto const found = std::ranges::find_if(
        data, [encoding](Datum const& datum) { return beyond(datum, encoding); });
    if (found != data.end()) {
        // Written up to there for its error, so that no id is taken for what cannot be sent.
        auto const until = static_cast<std::size_t>(found - data.begin()) + 1;
        auto const tried =
            wire::encode_forward_backward({.model_id = model.id(),
                                           .data = data.first(until),
                                           .loss = &loss,
                                           .forward_only = direction == Direction::forward},
                                          encoding, wire::Compression::none);
        if (!tried) return tried.error();
    }
    return Cut{.chunks = split(data, encoding, model.caps()), .encoding = encoding};
}

Result<PassPlan> write_pass(TrainingModel const& model, std::string_view name,
                            std::span<Datum const> data, Loss const& loss, Direction direction,
                            Cut const& cut, std::int64_t first_seq_id) {
    PassPlan plan;
    plan.name = name;
    plan.parallel = model.parallel();
    plan.encodings = model.encodings();
    // Since the data were cut the server may have been found to take something else.
    bool const decided = plan.encodings->decided();
    auto const known = decided ? plan.encodings->current() : cut.encoding;
    plan.submits.reserve(cut.chunks.size());
    for (std::size_t i = 0; i < cut.chunks.size(); ++i) {
        auto order = write_chunk({model.id(), data, &loss, direction, model.compression()},
                                 cut.chunks[i], first_seq_id + static_cast<std::int64_t>(i), known);
        if (!order) return order.error();
        plan.submits.push_back(*std::move(order));
    }
    if (!decided) {
        plan.recode = [rewriter =
                           std::make_shared<Rewriter const>(model, data, loss, direction, cut)](
                          std::size_t chunk, wire::Encoding encoding, std::int64_t seq_id) {
            return rewriter->write(chunk, encoding, seq_id);
        };
    }
    return plan;
}

Future<ForwardBackwardOutput> start_pass(Runtime const& runtime,
                                         std::shared_ptr<TrainingModel> const& model,
                                         std::string_view name, CallOptions call,
                                         std::span<Datum const> data, Loss const& loss,
                                         Direction direction) {
    auto const refused = [](ErrorDetails why) {
        return make_failed_future<ForwardBackwardOutput>(Error{std::move(why)});
    };
    auto& core = model->core();
    auto problem = math::no_data_problem(name, data);
    if (!problem && core.config().check_data) problem = math::data_problem(name, data, loss);
    if (problem) return refused(*std::move(problem));
    auto cut_data = cut(*model, data, loss, direction);
    if (!cut_data) return refused(cut_data.error().details());
    auto ticket = model->take(cut_data->chunks.size());
    auto plan = write_pass(*model, name, data, loss, direction, *cut_data, ticket.seq_id(0));
    if (!plan) return refused(plan.error().details());
    plan->ticket = std::move(ticket);
    plan->headers = core.trace_headers();
    return call_model<ForwardBackwardOutput>(
        runtime, model, std::string{name}, std::move(call), *std::move(plan),
        [model, name](std::vector<RetrievedResult> const& results) {
            return read_pass(*model, name, results);
        });
}

Result<ForwardBackwardOutput> read_pass(TrainingModel const& model, std::string_view name,
                                        std::vector<RetrievedResult> const& results) {
    constexpr std::string_view answer = "retrieve_future";
    std::vector<ForwardBackwardOutput> chunks;
    chunks.reserve(results.size());
    for (auto const& result : results) {
        auto chunk = result.protobuf ? wire::decode_forward_backward_proto(answer, result.view())
                                     : wire::decode_forward_backward_json(answer, result.view());
        if (!chunk) return chunk.error();
        chunks.push_back(*std::move(chunk));
    }
    auto combined = combine(std::move(chunks));
    auto& http = model.core().http();
    for (auto& line : combined.warnings) {
        http.log(LogLevel::warning, std::string{name} + ": " + line);
    }
    for (auto& line : combined.notes) http.log(LogLevel::debug, std::string{name} + ": " + line);
    return std::move(combined.output);
}

SubmitOrder json_submit(std::string_view path, std::string_view request_type, std::string body) {
    SubmitOrder order;
    order.path = path;
    order.request_type = request_type;
    order.body = std::make_shared<std::string const>(std::move(body));
    return order;
}

SubmitOrder numbered_submit(std::string_view path, std::string_view request_type,
                            Ticket const& ticket,
                            std::function<std::string(std::int64_t seq_id)> encode) {
    auto const seq_id = ticket.seq_id(0);
    auto order = json_submit(path, request_type, encode(seq_id));
    order.seq_id = seq_id;
    order.renumber = [encode = std::move(encode)](std::string const&,
                                                  std::int64_t number) -> Result<std::string> {
        return encode(number);
    };
    return order;
}

PassPlan one_submit(TrainingModel const& model, std::string_view name, Ticket ticket,
                    SubmitOrder order) {
    PassPlan plan;
    plan.name = name;
    plan.ticket = std::move(ticket);
    plan.submits.push_back(std::move(order));
    plan.encodings = model.encodings();
    return plan;
}

}  // namespace tinkxx::service
