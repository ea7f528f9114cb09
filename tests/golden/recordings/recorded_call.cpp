#include "golden/recordings/recorded_call.hpp"

#include "golden/recordings/golden.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace tinkxx::golden {

using testing::SentRequest;

RecordedCall::RecordedCall(value const& recorded)
    // Braces would make a list of it.
    : recording_(recorded), sender_{.version = text(recorded, "sdk_version")}, stub{recorded} {
    auto const expected = expected_requests(recording_);
    for (auto const& request : expected) {
        auto const path = text(request, "path");
        paths_.insert(path.substr(0, path.find('?')));
    }
    set_up();
    // What belongs to the set-up was answered as usual.
    stub.mark();
    for (auto const& request : expected) stub.script_request(request);
    if (version() != newest) stub.refuse_newest_members();
}

void RecordedCall::set_up() {
    auto options = stub.options();
    options.check_data = false;  // the official SDK sends what the server may refuse
    if (version() == "0.7.0") options.submit_encoding = SubmitEncoding::json;
    for (auto const* kwargs : {find(args(), "kwargs"), find(recording_, "service_kwargs")}) {
        if (kwargs != nullptr) read(options, kwargs->as_object());
    }
    service.emplace(std::move(options));
    auto const setup = member<std::string>(recording_, "setup");
    if (setup) {
        EXPECT_TRUE(stub.await(service->session_id()));
    }
    if (setup == "sampling") {
        SamplerOptions wanted;
        wanted.base_model = "org/tiny";
        if (auto const* given = find(recording_, "sampling_kwargs")) {
            for (auto const& entry : given->as_object()) {
                EXPECT_EQ(entry.key(), "record_stability_info") << "nobody here knows it";
            }
            wanted.record_stability_info =
                member<bool>(*given, "record_stability_info").value_or(false);
        }
        sampler.emplace(service->create_sampling_client(std::move(wanted)));
        EXPECT_TRUE(stub.await(sampler->sampling_session_id()));
    }
    if (setup == "training") {
        TrainingOptions wanted;
        wanted.lora.rank = 8;
        // R-TRAIN-53: here the parameters must be of the family that the model was made with.
        if (find(args(), "dimuon") != nullptr) wanted.optimizer = DimuonConfig{};
        auto made = stub.await(service->create_lora_training_client("org/tiny", std::move(wanted)));
        EXPECT_TRUE(made) << made.error().what();
        if (made) trainer.emplace(*std::move(made));
    }
}

void RecordedCall::read(ClientOptions& options, boost::json::object const& kwargs) {
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
                sender_.chosen.insert(lower_case(line.key()));
            }
        } else {
            ADD_FAILURE() << "an argument that nobody here knows: " << entry.key();
        }
    }
}

std::vector<value> RecordedCall::calls() const {
    auto const* several = find(args(), "calls");
    if (several == nullptr) return {args()};
    return {several->as_array().begin(), several->as_array().end()};
}

// What was sent -----------------------------------------------------------------------------------

void RecordedCall::expect_requests(std::set<std::string> const& passing) {
    compared_ = true;
    auto const expected = expected_requests(recording_);
    auto sent = stub.seen(paths_);
    std::erase_if(sent, [&](SentRequest const& one) {
        return passing.contains(one.path) && !paths_.contains(one.path);
    });
    std::string list;
    for (auto const& request : sent) list += request.method + ' ' + target(request) + '\n';
    ASSERT_EQ(sent.size(), expected.size()) << list;
    if (find(recording_, "arrival") != nullptr) return expect_concurrent(expected, sent);
    for (std::size_t i = 0; i < expected.size(); ++i) expect_sent(expected[i], sent[i], sender_);
}

/// What was sent at once is recorded by its numbers, and which of them came last.
void RecordedCall::expect_concurrent(std::vector<value> const& expected,
                                     std::vector<SentRequest> const& sent) const {
    auto left = sent;
    for (auto const& request : expected) {
        auto const found = std::ranges::find_if(left, [&request](SentRequest const& one) {
            return target(one) == text(request, "path") && subject_of(one) == subject_of(request);
        });
        ASSERT_NE(found, left.end()) << text(request, "path") << ", " << subject_of(request);
        expect_sent(request, *found, sender_);
        left.erase(found);
    }
    std::string last;
    for (auto const& one : sent) {
        if (auto const subject = subject_of(one); subject.starts_with("number ")) last = subject;
    }
    auto const& arrival = recording_.at("arrival");
    EXPECT_EQ(last, "number " + std::to_string(value_to<int>(arrival.at("last_seq_id"))));
}

void RecordedCall::expect_no_request() {
    compared_ = true;
    EXPECT_TRUE(stub.seen(paths_).empty());
}

void RecordedCall::expect_compared() const {
    EXPECT_TRUE(compared_) << "the replay did not compare what was sent";
}

void RecordedCall::expect_waits() const {
    // The clock stood still but for these.
    auto const* waits = find(recording_, "waits");
    double total = 0;
    double next = 1;
    for (auto const& wait : waits != nullptr ? waits->as_array() : boost::json::array{}) {
        bool const of_loop = wait.at(0) == "http" && repeats_by_loop(recording_);
        total += of_loop ? std::exchange(next, 2 * next) : value_to<double>(wait.at(1));
    }
    auto const sent = stub.seen(paths_);
    if (sent.empty()) {
        EXPECT_EQ(total, 0);
        return;
    }
    auto const took = std::chrono::duration<double>{sent.back().at - sent.front().at}.count();
    // Polls that follow at once keep 100 ms apart (C-48), and retries jitter by a quarter.
    EXPECT_NEAR(took, total, 0.25 * total + 0.1 * static_cast<double>(sent.size()));
}

void RecordedCall::expect_result(value const& made) const {
    auto const recorded = without_types(recording_.at("result"));
    EXPECT_TRUE(agrees(recorded, made)) << "recorded: " << recorded << "\nours: " << made;
}

}  // namespace tinkxx::golden
