#pragma once

#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "simulation/common/moody_service.hpp"
#include "simulation/training/training_wire.hpp"
#include "support/test_timer.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::simulation {

/// The header line by which the simulation marks the requests of a call.
inline constexpr std::string_view mark_line = "traceparent";

/// What kind of server it is, drawn by seed.
struct TrainingNature {
    enum class Takes : std::uint8_t { both, json, protobuf };
    /// In which encodings passes are taken.
    Takes takes{Takes::both};
    /// How a server that takes JSON only refuses anything else.
    int refusal{500};
    bool has_config{true};
    /// A repeat of a pass or step is recognised by its number; otherwise it is done again.
    bool knows_repeats{true};
    /// So is one of a save or load. Otherwise the name of a save is taken, and a load too late.
    bool knows_repeated_saves{true};
    /// Requests of a model wait for all numbers below theirs; otherwise they are done as they come.
    bool waits_for_numbers{true};
    bool parallel{true};
    bool zstd{false};
    bool via_load{false};
    /// Refuses members of requests that are newer than 0.25.0.
    bool old_members{false};
    bool lost_is_404{false};
    /// A request that failed is told by a 400 with a `detail`.
    bool failure_is_400{false};
    bool steps_have_metrics{true};
    std::optional<std::int64_t> chunk_items{};
    std::optional<std::int64_t> chunk_bytes{};
    std::optional<std::int64_t> bytes_in_flight{};
    std::optional<std::int64_t> download_bytes{};
    std::chrono::seconds billing_limit{3600};
    /// Longest that a poll is held back; zero: never.
    std::chrono::nanoseconds hold{std::chrono::seconds{30}};
    std::chrono::nanoseconds longest_job{std::chrono::seconds{5}};
    /// Larger results are announced by their size first.
    std::size_t inline_bytes{1U << 20U};
};

/// Something that was done to a model.
struct Applied {
    TrainRequest request{};
    /// The model after a load, and as a save found it.
    ModelState state{};
};

struct TrainedModel {
    ModelState born{};
    ModelState state{};
    std::vector<Applied> log{};
};

/// A service that trains. Requests of a model are carried out in
/// the order of their numbers. Most services wait for a number that has not come, for ever; others
/// do so only with a chunk that is not its call's first. It complains of a request that has waited
/// for a second: nobody submits one before those below it have come.
class TrainingService final : public MoodyService {
public:
    TrainingService(std::string name, std::uint64_t seed, testing::ManualClock& clock,
                    testing::FakeTransport& transport, Tally& tally);

    [[nodiscard]] std::optional<testing::Reply> serve(testing::SentRequest const& request) override;
    void calm() override;
    /// What is not done is lost, or begun anew; what is done stays.
    void restart(bool loses);
    /// A client sends a pass as JSON, whether it arrives or not: it leaves doubtful steps alone
    /// from then on (C-59), and their numbers.
    void taken_for_old();
    /// Nothing more will come for this call: chunks of it do not wait for others any more. Whether
    /// it ended with what the service said when it fell over it.
    void call_over(std::string const& mark, bool fell_over);

    [[nodiscard]] TrainingNature const& nature() const noexcept { return nature_; }
    [[nodiscard]] std::map<std::string, TrainedModel> const& models() const noexcept {
        return models_;
    }

private:
    struct Held {
        Call call{};
        bool protobuf{false};
        bool metadata{false};
        support::TestTimer patience{};
    };
    struct Job {
        std::string id{};
        std::string mark{};
        TrainRequest request{};
        bool finished{false};
        std::string failure{};  ///< empty: it went well
        std::string json{};
        std::string proto{};
        std::vector<std::shared_ptr<Held>> held{};
        support::TestTimer work{};  ///< of jobs that belong to no model
    };
    using JobPtr = std::shared_ptr<Job>;
    /// By number, then by arrival.
    using Place = std::pair<std::int64_t, std::int64_t>;
    struct Worker {
        std::map<Place, JobPtr> queue{};
        std::set<std::int64_t> taken{};  ///< numbers that came
        std::set<std::int64_t> came{};   ///< the same, even if what came was lost since
        /// Numbers that the service fell over, and whose: if that call failed for it, or tried for
        /// as long as calls do, nobody dares to use the number again, and it is not waited for.
        struct FallenOver {
            std::string mark{};
            TimePoint since{};
        };
        std::map<std::int64_t, FallenOver> fallen_over{};
        /// Calls and kinds of requests whose first chunk has come.
        std::set<std::pair<std::string, TrainKind>> begun{};
        std::set<std::int64_t> done{};
        support::TestTimer work{};
    };

    static TrainingNature draw_nature(service::Random& random);

    std::optional<Answer> mood(testing::SentRequest const& request, std::string_view path);
    void note_spoilt(testing::SentRequest const& request, Answer const& answer);
    /// A number below this one for which the service waits.
    [[nodiscard]] std::optional<std::int64_t> missing(Worker const& worker,
                                                      std::int64_t number) const;
    void watch(std::string const& model, std::int64_t number);
    Answer train(testing::SentRequest const& request, std::string_view path);
    Answer refused_encoding(ReadRequest const& read, std::string_view path);
    Answer submit(testing::SentRequest const& request, TrainRequest asked);
    Answer submit_new(testing::SentRequest const& request, TrainRequest const& asked);
    Answer known(Job const& job, TrainRequest const& asked);
    Answer sample(testing::SentRequest const& request);
    Answer poll(testing::SentRequest const& request);
    Answer client_config();
    Answer weights_info(testing::SentRequest const& request);
    Answer sampling_session(testing::SentRequest const& request);

    JobPtr make_job(testing::SentRequest const& request, TrainRequest asked, std::string id);
    void begin_alone(JobPtr const& job, std::function<void(Job&)> work);
    [[nodiscard]] bool may_work(Worker const& worker);
    void look_for_work(std::string const& model);
    void work(std::string const& model);
    void apply(TrainedModel& model, Job& job);
    void finish(Job& job);
    [[nodiscard]] Reply result_of(Job const& job, bool protobuf, bool metadata);
    Reply not_yet(Job const& job);
    Reply lost(std::string const& id);

    testing::FakeTransport& transport_;
    TrainingNature nature_;
    std::int64_t arrivals_{0};
    std::map<std::string, TrainedModel> models_{};
    std::map<std::string, Worker> workers_{};
    std::map<std::string, JobPtr> jobs_{};
    std::map<std::string, ModelState> checkpoints_{};         ///< by path
    std::map<std::string, std::uint64_t> sampler_weights_{};  ///< by sampling session
    std::set<std::string> over_{};
    std::set<std::string> over_by_fall_{};
    /// Requests that a mood answered: the network may bring them twice.
    std::set<std::string> spoilt_{};
    std::deque<support::TestTimer> watches_{};
};

}  // namespace tinkxx::simulation
