#pragma once

#include <tinkxx/options.hpp>
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include <boost/json/object.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx::support {

/// A submit of a sample as it reached the fake service.
struct Submit {
    std::int64_t seq_id{0};
    std::string sampling_session_id{};
    boost::json::object body{};
    TimePoint at{};
    Call call{};
};

/// A request about a model as it reached the fake service.
struct TrainSubmit {
    /// After `/api/v1/`, e.g. `forward_backward`.
    std::string path{};
    /// 0 if the request has none.
    std::int64_t seq_id{0};
    /// Data of a forward or backward pass.
    std::size_t data{0};
    bool forward_only{false};
    bool protobuf{false};
    /// The body, unless it is protobuf.
    boost::json::object json{};
    /// The body as it came.
    std::string bytes{};
    std::string model_id{};
    TimePoint at{};
    Call call{};
};

/// A Tinker service for tests of what goes over the wire, on a manual clock: it starts sessions,
/// takes samples and answers polls, by the raw requests and replies that a test wants.
/// `testing::FakeTinker` is for everybody else.
///
///     RawTinker tinker;
///     tinker.on_submit = [](Submit const& submit) { … };   // empty reply: as usual
///     ServiceClient service{tinker.options()};
class RawTinker {
public:
    using Answer = std::optional<testing::Reply>;

    explicit RawTinker(std::uint64_t seed = 0);

    /// For a client of this service.
    [[nodiscard]] ClientOptions options() const;

    /// What client/config and client/dynamic_config answer.
    boost::json::object flags{};
    boost::json::object dynamic_flags{};
    /// Answers a submit, or leaves it to the default: accepted, as request `req-<seq_id>`.
    std::function<Answer(Submit const&)> on_submit{};
    /// Answers a poll for a request, or leaves it to the default: done, with `result`.
    std::function<Answer(std::string const& request_id, std::int64_t iteration)> on_poll{};
    /// Answers a request about a model, or leaves it to the default: accepted, as request
    /// `train-<seq_id>`, with the result of `train_result`.
    std::function<Answer(TrainSubmit const&)> on_train{};
    /// The JSON of its result, or empty for the default.
    std::function<std::string(TrainSubmit const&)> train_result{};
    /// Answers any other request, or leaves it to the default.
    std::function<Answer(testing::SentRequest const&)> on_other{};
    /// The result of a sample, as JSON.
    std::string result{R"({"sequences":[{"stop_reason":"stop","tokens":[7,8,9],)"
                       R"("logprobs":[-0.5,-0.25,-1.0]}],"type":"sample"})"};

    [[nodiscard]] std::vector<Submit> const& submits() const noexcept { return submits_; }
    [[nodiscard]] std::vector<std::int64_t> submitted_seq_ids() const;
    [[nodiscard]] std::vector<TrainSubmit> const& trained() const noexcept { return trained_; }
    /// `forward_backward 1`, `optim_step 2`, … in the order of their coming.
    [[nodiscard]] std::vector<std::string> trained_steps() const;
    [[nodiscard]] std::size_t count(std::string_view path) const;
    [[nodiscard]] std::vector<std::string> const& log() const noexcept { return *log_; }
    /// Log lines that hold `text`.
    [[nodiscard]] std::size_t logged(std::string_view text) const;

private:
    std::optional<testing::Reply> answer(testing::SentRequest const& request);
    std::optional<testing::Reply> train(testing::SentRequest const& request, std::string path);
    [[nodiscard]] std::string default_result(TrainSubmit const& submit) const;

    std::vector<Submit> submits_{};
    std::vector<TrainSubmit> trained_{};
    std::map<std::string, std::string> promised_{};
    std::shared_ptr<std::vector<std::string>> const log_;

public:
    std::shared_ptr<testing::ManualClock> const clock;
    std::shared_ptr<testing::FakeTransport> const transport;
    Runtime const runtime;
};

/// A reply with a JSON body.
[[nodiscard]] testing::Reply json_reply(std::string body, int status = 200);

}  // namespace tinkxx::support
