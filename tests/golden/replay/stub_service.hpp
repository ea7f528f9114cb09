#pragma once

#include <tinkxx/future.hpp>
#include <tinkxx/options.hpp>
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>

#include "golden/recordings/recording.hpp"

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::golden {

/// The environment that a recording was made in: none of the variables that clients read but these.
class Circumstances {
public:
    explicit Circumstances(std::map<std::string, std::string> const& variables);
    ~Circumstances();
    Circumstances(Circumstances const&) = delete;
    Circumstances& operator=(Circumstances const&) = delete;

private:
    std::map<std::string, std::string> before_{};
    std::vector<std::string> set_{};
};

/// The server that the recordings were made with, on a clock that jumps over waits: it gives the
/// answers of a script, each to the request that it was given to, and then its usual ones.
///
///     StubService stub{recording};
///     stub.script_requests(recording);
///     ServiceClient service{stub.options()};
///     … stub.mark(); …
///     for (auto const& request : stub.seen(paths)) …
class StubService {
public:
    /// In the circumstances that the recording names.
    explicit StubService(value const& recording);

    /// For a client of this server. The key comes from the environment.
    [[nodiscard]] ClientOptions options() const;

    void script(std::string const& path, testing::Reply reply, int times = 1);
    /// The answer to one recorded request, and those of a scripted response.
    void script_request(value const& request);
    void script_requests(value const& recording);
    void script_answers(value const& recording);
    /// Answers at that path are held back.
    void hold(std::string path) { held_.insert(std::move(path)); }
    /// The first sample, or model, is refused as by a server that does not know its newest members.
    void refuse_newest_members() { refuse_newest_ = true; }

    /// What came so far belongs to the set-up.
    void mark() { marked_ = log_.size(); }
    /// What came since, without what clients do by themselves unless `wanted` names its path.
    [[nodiscard]] std::vector<testing::SentRequest> seen(std::set<std::string> const& wanted) const;
    [[nodiscard]] std::vector<std::string> const& lines() const noexcept { return *lines_; }
    [[nodiscard]] std::string const& session_id() const noexcept { return session_id_; }

    /// The outcome, with time passing as needed.
    template <class T>
    [[nodiscard]] Result<T> await(Future<T> future) {
        // A command of the shell takes real time, and says by itself when it is done.
        clock->set_auto_advance(!runs_command_);
        for (int i = 0; runs_command_ && !future.ready() && i < 600; ++i) {
            (void)clock->turn(std::chrono::milliseconds{100});
        }
        clock->set_auto_advance(true);
        if (!future.wait_for(std::chrono::hours{3})) {
            return ErrorDetails{.kind = ErrorKind::usage, .message = "never completed"};
        }
        return future.result();
    }
    /// Runs what is due now.
    void settle() {
        while (clock->run_ready()) {
        }
    }

private:
    [[nodiscard]] std::optional<testing::Reply> answer(testing::SentRequest const& request);
    [[nodiscard]] std::optional<testing::Reply> usual(testing::SentRequest const& request);
    [[nodiscard]] std::optional<testing::Reply> scripted(testing::SentRequest const& request);
    [[nodiscard]] std::vector<std::string> places(testing::SentRequest const& request) const;
    [[nodiscard]] testing::Reply result_of(std::string const& request_id) const;
    [[nodiscard]] testing::Reply result_of_samples(std::int64_t count) const;
    [[nodiscard]] testing::Reply promise(testing::SentRequest const& request,
                                         testing::Reply result);
    void keep_result_of_pass(testing::SentRequest const& request, testing::Reply const& accepted);

    using Steps = std::deque<std::pair<testing::Reply, int>>;
    std::map<std::string, Steps> script_{};
    std::set<std::string> held_{};
    std::vector<testing::SentRequest> log_{};
    std::size_t marked_{0};
    std::string version_;
    std::string token_;
    std::string base_path_{};
    std::string session_id_{"11111111-2222-5333-8444-555555555555"};
    boost::json::object flags_{{"use_pyqwest_transport", false}};
    boost::json::object dynamic_{{"refresh_interval_sec", 300}};
    // By the ids given out: what the pending result is of, and it.
    std::map<std::string, std::string> promised_{};
    std::map<std::string, testing::Reply> results_{};
    std::map<std::string, std::size_t> lengths_{};  // of answers that are recorded by their length
    int promises_{0};
    bool refuse_newest_{false};
    bool runs_command_{false};
    std::optional<Circumstances> circumstances_{};
    std::shared_ptr<std::vector<std::string>> const lines_{
        std::make_shared<std::vector<std::string>>()};

public:
    std::shared_ptr<testing::ManualClock> const clock;
    std::shared_ptr<testing::FakeTransport> const transport;
    Runtime const runtime;
};

/// The path of a request with its query, as recordings write it.
[[nodiscard]] std::string target(testing::SentRequest const& request);

}  // namespace tinkxx::golden
