#pragma once

#include <tinkxx/types/training.hpp>

#include "simulation/training/training_model.hpp"
#include "simulation/training/training_wire.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::simulation {

/// A stretch of a call's data that travels in one request.
struct Stretch {
    std::size_t first{0};
    std::size_t count{0};

    bool operator==(Stretch const&) const = default;
};
/// How data are cut if each takes so many bytes (R-TRAIN-20).
[[nodiscard]] std::vector<Stretch> stretches(std::vector<std::int64_t> const& bytes,
                                             std::int64_t most_items, std::int64_t most_bytes);
/// Estimates of R-TRAIN-22.
[[nodiscard]] std::int64_t json_estimate(SentDatum const& datum);
[[nodiscard]] std::int64_t proto_estimate(SentDatum const& datum);

/// One call of a user: what it asks for, and what became of it.
struct TrainCall {
    enum class What : std::uint8_t {
        create,
        forward,
        forward_backward,
        custom,
        step,
        save,
        save_sampler,  ///< under a name
        save_external,
        ephemeral,  ///< under none, and a sample of it
        load,
        info,
        unload,
    };
    int id{0};
    std::size_t client{0};
    What what{};
    /// Among the calls of its model.
    std::size_t place{0};

    // What the caller gave.
    std::vector<SentDatum> data{};
    std::string loss{};
    std::map<std::string, double, std::less<>> config{};
    std::array<double, 6> adam{};
    std::string name{};
    bool overwrite{false};
    bool optimizer{false};
    /// Ways in which the data may be cut: the estimate depends on the encoding.
    std::vector<std::vector<Stretch>> cuts{};

    // Of a custom loss: what the function was given and gave.
    std::optional<std::vector<std::vector<float>>> seen{};
    std::vector<SentDatum> backward{};
    CustomLossValue value{};

    // How it goes.
    std::optional<TimePoint> begun{};
    std::optional<TimePoint> over{};
    std::optional<TimePoint> cancelled{};
    bool succeeded{false};
    int ends{0};
    /// Statuses of the answers to its requests; 0 for none.
    std::set<int> statuses{};
    bool told_failure{false};
    /// Units that the service has promised to look after, by pass.
    std::array<std::size_t, 2> accepted{};

    // What it ended with.
    ForwardBackwardOutput output{};
    OptimStepResult step{};
    std::string path{};
    std::optional<std::vector<std::int32_t>> drawn{};

    [[nodiscard]] bool pass() const noexcept {
        return what == What::forward || what == What::forward_backward || what == What::custom;
    }
    [[nodiscard]] bool numbered() const noexcept {
        return what != What::create && what != What::info;
    }
    [[nodiscard]] std::size_t passes() const noexcept { return what == What::custom ? 2 : 1; }
    [[nodiscard]] std::size_t units() const noexcept { return pass() ? data.size() : 1; }
    /// Whether all of it was accepted, so that others may follow.
    [[nodiscard]] bool submitted() const noexcept {
        return accepted[0] == units() && (passes() == 1 || accepted[1] == units());
    }
    /// Whether there is nothing to be sent for it now: the service has to tell a result first.
    [[nodiscard]] bool only_polls() const noexcept {
        return submitted() || (passes() == 2 && accepted[0] == units() && !seen);
    }
    [[nodiscard]] bool gone_before(TimePoint now) const noexcept {
        return (over && *over < now) || (cancelled && *cancelled <= now);
    }
};

/// Watches the requests about one model, and in the end replays what was done to it with what the
/// callers gave. What it holds against a client is given to `problem`.
class TrainJudge {
public:
    using Problem = std::function<void(std::string)>;

    TrainJudge(std::string id, Problem problem)
        : id_{std::move(id)}, problem_{std::move(problem)} {}

    /// A call is about to be made. It stays.
    void add(TrainCall& call) {
        call.place = program_.size();
        program_.push_back(&call);
    }
    /// What holds for a submit.
    struct Rules {
        bool parallel{false};
        /// Whether this request may be done twice: nobody knows yet that the server does not
        /// recognise repeats, or the caller wants it so.
        bool may_be_done_twice{false};
    };
    /// A request of `call` is made; null: of the call that made the model.
    void on_submit(TrainCall* call, ReadRequest const& read, std::string const& body, TimePoint now,
                   Rules rules);
    void on_answer(std::int64_t seq_id, int status);
    void on_withdrawn(std::int64_t seq_id);
    /// A call is over; `now` it must not hold up others.
    void on_over(TrainCall const& call, TimePoint now);

    /// The call whose turn it is, if nothing was sent for it yet and no request of another is under
    /// way, or may have come to the service or not; null otherwise.
    [[nodiscard]] TrainCall const* next_to_submit() const;

    /// Everything is over: `model` must be what the calls make of it.
    void verify(TrainedModel const& model, bool steps_have_metrics);
    /// The same for what a call gave back, which needs the replay.
    void verify_numbers();

    [[nodiscard]] std::string const& id() const noexcept { return id_; }

private:
    struct Sent {
        TrainCall* call{nullptr};
        std::size_t pass{0};
        Stretch stretch{.first = 0, .count = 1};
        TrainRequest wanted{};
        std::string body{};
        bool protobuf{false};
        bool open{false};
        bool accepted{false};
        bool in_doubt{false};  ///< unless it is accepted: the service may have it
        bool may_be_done_twice{false};
        bool repeated{false};
        /// Its number was left open by a call that came to nothing, when higher ones were sent.
        bool fills_gap{false};
        int done{0};
        PassResult result{};
        double step{0};
        std::uint64_t weights{0};
    };
    struct Overtaken {
        TrainCall const* call{nullptr};
        TimePoint when{};
        std::string by{};
    };

    void on_first(Sent& sent, ReadRequest const& read, TimePoint now, bool parallel);
    void on_repeat(Sent const& sent, ReadRequest const& read, std::string const& body);
    [[nodiscard]] TrainRequest wanted(TrainCall const& call, TrainRequest const& got, Sent& sent);
    void check_cut(Sent const& sent, TrainRequest const& got);
    void overtakes(TrainCall const& call, TimePoint now, std::int64_t seq_id);
    void check_order(Sent& sent, std::int64_t seq_id, TimePoint now);
    void check_chunks(Sent const& sent, std::int64_t seq_id, bool parallel);
    void check_result(TrainCall const& call, bool steps_have_metrics);
    void check_outputs(TrainCall const& call, std::vector<Sent const*> const& parts);
    [[nodiscard]] std::string name(std::int64_t seq_id) const {
        return id_ + '/' + std::to_string(seq_id);
    }
    void problem(std::string what) const { problem_(std::move(what)); }

    std::string const id_;
    Problem const problem_;
    std::vector<TrainCall*> program_{};
    std::map<std::int64_t, Sent> sent_{};
    std::vector<Overtaken> overtaken_{};
};

}  // namespace tinkxx::simulation
