#pragma once

#include <tinkxx/service_client.hpp>

#include "golden/recordings/forms.hpp"
#include "golden/replay/expect_sent.hpp"
#include "golden/replay/stub_service.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tinkxx::golden {

/// A recorded call about to be made here.
class RecordedCall {
public:
    /// With what existed before the call.
    explicit RecordedCall(value const& recorded);

    [[nodiscard]] value const& args() const { return recording_.at("args"); }
    [[nodiscard]] value const& recording() const { return recording_; }
    [[nodiscard]] std::string const& version() const { return sender_.version; }
    [[nodiscard]] bool has_form(std::string const& name) const {
        return golden::has_form(name, recording_);
    }
    /// The arguments of each of several calls, or of the one.
    [[nodiscard]] std::vector<value> calls() const;
    /// Numbers that the caller computed are compared but for their last bits.
    void expect_rounding() { sender_.rounds = true; }

    /// Compares what was sent, one by one. `passing` are paths that this client asks on its way and
    /// the official one does not, or not always.
    void expect_requests(std::set<std::string> const& passing = {});
    /// Nothing was sent, whatever is recorded.
    void expect_no_request();
    /// What was sent cannot be compared: the recording is listed as one that differs.
    void differs() { compared_ = true; }
    void expect_waits() const;
    /// Expects that what was sent has been compared.
    void expect_compared() const;

    /// Compares a result, or the kind of the error.
    template <class T, class Json>
    void expect_outcome(Result<T> const& ours, Json json) const {
        if (auto const* error = find(recording_, "error")) {
            ASSERT_FALSE(ours) << "succeeded";
            return expect_same_error(*error, ours.error());
        }
        ASSERT_TRUE(ours) << ours.error().what();
        expect_result(json(*ours));
    }
    /// Compares a result.
    void expect_result(value const& made) const;

private:
    void set_up();
    void read(ClientOptions& options, boost::json::object const& kwargs);
    void expect_concurrent(std::vector<value> const& expected,
                           std::vector<testing::SentRequest> const& sent) const;

    value const recording_;
    RecordedSender sender_{};
    std::set<std::string> paths_{};
    bool compared_{false};

public:
    StubService stub;
    std::optional<ServiceClient> service{};
    std::optional<SamplingClient> sampler{};
    std::optional<TrainingClient> trainer{};
};

using KnownCalls = std::map<std::string, std::function<void(RecordedCall&)>>;
/// Calls about models and their training.
void add_training_calls(KnownCalls& known);
/// Calls of REST and admin clients.
void add_rest_calls(KnownCalls& known);

}  // namespace tinkxx::golden
