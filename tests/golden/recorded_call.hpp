#pragma once

#include <tinkxx/service_client.hpp>

#include "golden.hpp"
#include "request_replay.hpp"
#include "stub_service.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tinkxx::golden {

/// A recorded call about to be made here.
class Call {
public:
    explicit Call(value const& recorded)
        // Braces would make a list of it.
        : recording_(recorded), version_{text(recorded, "sdk_version")}, stub{recorded} {
        for (auto const& request : recording_.at("requests").as_array()) {
            auto const path = text(request, "path");
            paths_.insert(path.substr(0, path.find('?')));
        }
        auto options = stub.options();
        options.check_data = false;  // the official SDK sends what the server may refuse
        if (version_ == "0.7.0") options.submit_encoding = SubmitEncoding::json;
        if (auto const* kwargs = find(args(), "kwargs")) read(options, kwargs->as_object());
        service.emplace(std::move(options));
        // What belongs to the set-up is answered as usual.
        auto const setup = member<std::string>(recording_, "setup");
        if (setup) {
            EXPECT_TRUE(stub.await(service->session_id()));
        }
        if (setup == "sampling") {
            SamplerOptions wanted;
            wanted.base_model = "org/tiny";
            if (auto const* given = find(recording_, "sampling_kwargs")) {
                wanted.record_stability_info =
                    member<bool>(*given, "record_stability_info").value_or(false);
            }
            sampler.emplace(service->create_sampling_client(std::move(wanted)));
            EXPECT_TRUE(stub.await(sampler->sampling_session_id()));
        }
        if (setup == "training") {
            auto made = stub.await(service->create_lora_training_client("org/tiny", 8));
            EXPECT_TRUE(made) << made.error().what();
            if (made) trainer.emplace(*std::move(made));
        }
        stub.mark();
        for (auto const& request : in_order_of_arrival(recording_)) stub.script_request(request);
        if (version_ != newest) stub.refuse_newest_members();
    }

    [[nodiscard]] value const& args() const { return recording_.at("args"); }
    [[nodiscard]] value const& recording() const { return recording_; }
    [[nodiscard]] std::string const& version() const { return version_; }
    /// The arguments of each of several calls, or of the one.
    [[nodiscard]] std::vector<value> calls() const {
        auto const* several = find(args(), "calls");
        if (several == nullptr) return {args()};
        return {several->as_array().begin(), several->as_array().end()};
    }

    /// Compares what was sent. `Telemetry` and others send more later: then only the first count.
    void expect_requests(bool first_only = false) const {
        auto const expected = in_order_of_arrival(recording_);
        auto const sent = stub.seen(paths_);
        if (find(recording_, "arrival") != nullptr) return expect_by_path(expected, sent);
        if (first_only) {
            ASSERT_GE(sent.size(), expected.size());
        } else {
            std::string list;
            for (auto const& request : sent) list += request.method + ' ' + target(request) + '\n';
            ASSERT_EQ(sent.size(), expected.size()) << list;
        }
        for (std::size_t i = 0; i < expected.size(); ++i) {
            expect_sent(expected[i], sent[i], version_, chosen_);
        }
    }
    /// What was sent at once has an order at each place only.
    void expect_by_path(std::vector<value> const& expected,
                        std::vector<testing::SentRequest> const& sent) const {
        ASSERT_EQ(sent.size(), expected.size());
        for (auto const& path : paths_) {
            std::size_t next = 0;
            for (auto const& request : expected) {
                if (text(request, "path") != path) continue;
                while (next < sent.size() && sent[next].path != path) ++next;
                ASSERT_LT(next, sent.size()) << "another one to " << path;
                expect_sent(request, sent[next++], version_, chosen_);
            }
        }
    }
    void expect_waits() const {
        auto const* waits = find(recording_, "waits");
        if (waits == nullptr) return;
        // The clock stood still but for these.
        double total = 0;
        for (auto const& wait : waits->as_array()) total += value_to<double>(wait.at(1));
        auto const sent = stub.seen(paths_);
        ASSERT_FALSE(sent.empty());
        auto const took = std::chrono::duration<double>{sent.back().at - sent.front().at}.count();
        // Polls that follow at once keep 100 ms apart (C-48), and retries jitter by a quarter.
        EXPECT_NEAR(took, total, 0.25 * total + 0.1 * static_cast<double>(sent.size()));
    }

    /// Compares a result, or the kind of the error.
    template <class T, class Json>
    void expect_outcome(Result<T> const& ours, Json json) const {
        if (auto const* error = find(recording_, "error")) {
            ASSERT_FALSE(ours) << "succeeded";
            return expect_same_error(*error, ours.error());
        }
        ASSERT_TRUE(ours) << ours.error().what();
        value const made = json(*ours);
        auto const& recorded = recording_.at("result");
        EXPECT_TRUE(agrees(recorded, made)) << "recorded: " << recorded << "\nours: " << made;
    }

    void read(ClientOptions& options, boost::json::object const& kwargs) {
        for (auto const& entry : kwargs) {
            if (entry.key() == "user_metadata") {
                options.user_metadata = value_to<std::map<std::string, std::string>>(entry.value());
            } else if (entry.key() == "project_id") {
                options.project_id = value_to<std::string>(entry.value());
            } else if (entry.key() == "display_name") {
                options.display_name = value_to<std::string>(entry.value());
            } else if (entry.key() == "default_headers_overrides") {
                for (auto const& line : entry.value().as_object()) {
                    options.default_headers.add(line.key(), value_to<std::string>(line.value()));
                    chosen_.insert(lower_case(line.key()));
                }
            } else {
                ADD_FAILURE() << "an argument that nobody here knows: " << entry.key();
            }
        }
    }

private:
    value const recording_;
    std::string const version_;
    std::set<std::string> paths_{};
    std::set<std::string> chosen_{};

public:
    StubService stub;
    std::optional<ServiceClient> service{};
    std::optional<SamplingClient> sampler{};
    std::optional<TrainingClient> trainer{};
};

using KnownCalls = std::map<std::string, std::function<void(Call&)>>;
/// Calls about models and their training.
void add_training_calls(KnownCalls& known);

}  // namespace tinkxx::golden
