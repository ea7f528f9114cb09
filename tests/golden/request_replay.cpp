#include "request_replay.hpp"

#include <tinkxx/service_client.hpp>

#include "golden.hpp"
#include "recorded_call.hpp"
#include "stub_service.hpp"
#include "wire/json.hpp"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <zstd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace tinkxx::golden {

using namespace std::chrono_literals;

namespace {

std::string hex(std::string_view bytes) {
    std::string text;
    for (auto const each : bytes) {
        constexpr std::string_view digits = "0123456789abcdef";
        auto const byte = static_cast<unsigned char>(each);
        text += digits[byte >> 4U];
        text += digits[byte & 15U];
    }
    return text;
}

std::string sha256(std::string_view bytes) {
    std::string digest(32, '\0');
    unsigned size = 0;
    EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), &size,
               EVP_sha256(), nullptr);
    return hex(digest);
}

std::string unpacked(std::string const& frame) {
    auto const size = ZSTD_getFrameContentSize(frame.data(), frame.size());
    EXPECT_LT(size, 1U << 30U) << "one frame that tells its size";
    std::string plain(size, '\0');
    EXPECT_EQ(ZSTD_decompress(plain.data(), plain.size(), frame.data(), frame.size()), size);
    return plain;
}

}  // namespace
using testing::SentRequest;

// Requests ----------------------------------------------------------------------------------------

std::string lower_case(std::string text) {
    std::ranges::transform(text, text.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return text;
}

std::vector<value> in_order_of_arrival(value const& recording) {
    auto const& recorded = recording.at("requests").as_array();
    std::vector<value> requests{recorded.begin(), recorded.end()};
    auto const* arrival = find(recording, "arrival");
    if (arrival == nullptr) return requests;
    auto const last = value_to<std::int64_t>(arrival->at("last_seq_id"));
    auto const place = [last](value const& request) {
        auto seq_id = member<std::int64_t>(request, "seq_id").value_or(0);
        if (auto const* body = find(request, "body_json"); seq_id == 0 && body != nullptr) {
            if (auto const id = member<std::string>(*body, "request_id")) {
                seq_id = std::stoll(id->substr(id->rfind('-') + 1));
            }
        }
        return std::pair{seq_id == last, seq_id};
    };
    std::ranges::stable_sort(requests, {}, place);
    return requests;
}

namespace {

/// The official SDK sends tags in no particular order and untrimmed; ours trims and drops blank
/// ones (C-56).
void trim_tags(value& body) {
    auto* tags = body.is_object() ? body.get_object().if_contains("tags") : nullptr;
    if (tags == nullptr || !tags->is_array()) return;
    std::set<std::string> sorted;
    for (auto const& tag : tags->get_array()) {
        auto const text = value_to<std::string>(tag);
        auto const first = text.find_first_not_of(' ');
        if (first == std::string::npos) continue;
        sorted.insert(text.substr(first, text.find_last_not_of(' ') - first + 1));
    }
    *tags = boost::json::value_from(sorted);
}

void drop_nulls(value& json) {
    if (json.is_array()) {
        for (auto& one : json.get_array()) drop_nulls(one);
    }
    if (!json.is_object()) return;
    std::vector<std::string> names;
    for (auto& one : json.get_object()) {
        drop_nulls(one.value());
        if (one.value().is_null()) names.emplace_back(one.key());
    }
    for (auto const& name : names) json.get_object().erase(name);
}

/// 0.7.0 left defaults and type tags out, wrote nulls, and did not know the rest. Takes out of
/// `ours` what such a release does not send.
void leave_out_later_members(value& ours, value const& recorded) {
    static boost::json::object const later{
        {"learning_rate", 1e-4},
        {"beta1", 0.9},
        {"beta2", 0.95},
        {"eps", 1e-12},
        {"weight_decay", 0},
        {"grad_clip_norm", 0},
        {"overwrite", false},
        {"train_unembed", true},
        {"train_mlp", true},
        {"train_attn", true},
        {"optimizer_config", nullptr},
        {"temperature", 1},
        {"top_k", -1},
        {"top_p", 1},
        {"allow_metadata_only", nullptr},
        {"process_uuid", nullptr},
        {"type", nullptr},  // null here: whatever its value
    };
    if (ours.is_array() && recorded.is_array()) {
        auto const count = std::min(ours.get_array().size(), recorded.get_array().size());
        for (std::size_t i = 0; i < count; ++i) {
            leave_out_later_members(ours.get_array()[i], recorded.get_array()[i]);
        }
    }
    if (!ours.is_object() || !recorded.is_object()) return;
    std::vector<std::string> names;
    for (auto& one : ours.get_object()) {
        if (auto const* other = recorded.get_object().if_contains(one.key())) {
            leave_out_later_members(one.value(), *other);
        } else if (auto const* known = later.if_contains(one.key());
                   known != nullptr && (known->is_null() || same(*known, one.value()))) {
            names.emplace_back(one.key());
        }
    }
    for (auto const& name : names) ours.get_object().erase(name);
}

}  // namespace

/// A body that is no JSON, or too long to be recorded.
static void expect_same_bytes(value const& expected, SentRequest const& sent) {
    if (sent.header("Content-Type") != "application/x-protobuf") {
        // A long one of an old release, which left out defaults: that much can be said.
        auto const ours = boost::json::parse(sent.body);
        auto const* input = find(ours, "forward_backward_input");
        ASSERT_NE(input, nullptr) << sent.path;
        EXPECT_EQ(input->at("data").as_array().size(),
                  value_to<std::size_t>(expected.at("datum_count")));
        return;
    }
    if (auto const* decoded = find(expected, "body_decoded");
        decoded != nullptr && find(*decoded, "loss_fn_config") != nullptr &&
        find(*decoded, "loss_fn_config_v2") == nullptr) {
        return;  // R-TRAIN-39: later releases repeat the numbers in another member
    }
    bool const zstd = member<bool>(expected, "body_zstd").value_or(false);
    EXPECT_EQ(sent.header("Content-Encoding"), zstd ? "zstd" : "");
    if (zstd) {
        auto const plain = unpacked(sent.body);
        EXPECT_EQ(plain.size(), value_to<std::size_t>(expected.at("body_uncompressed_length")));
        EXPECT_EQ(sha256(plain), text(expected, "body_uncompressed_sha256"));
    } else if (find(expected, "body_base64") != nullptr) {
        EXPECT_EQ(hex(sent.body), hex(bytes_of(expected, "body_base64")));
    } else {
        EXPECT_EQ(sent.body.size(), value_to<std::size_t>(expected.at("body_length")));
        EXPECT_EQ(sha256(sent.body), text(expected, "body_sha256"));
    }
}

void expect_same_body(value const& expected, SentRequest const& sent, std::string const& version) {
    auto const* recorded = find(expected, "body_json");
    if (recorded == nullptr && sent.body.empty()) {
        EXPECT_EQ(find(expected, "body_base64"), nullptr) << sent.path;
        return;
    }
    if (recorded == nullptr) return expect_same_bytes(expected, sent);
    auto theirs = *recorded;
    auto parsed = wire::parse_json(sent.path, sent.body);
    ASSERT_TRUE(parsed) << sent.body;
    auto& ours = *parsed;
    boost::json::error_code failed;
    if (auto const* pointers = find(expected, "volatile_body")) {
        for (auto const& pointer : pointers->as_array()) {
            auto* const mine = ours.find_pointer(value_to<std::string>(pointer), failed);
            ASSERT_NE(mine, nullptr) << pointer << " of " << sent.body;
            *mine = nullptr;
            *theirs.find_pointer(value_to<std::string>(pointer), failed) = nullptr;
        }
    }
    trim_tags(ours);
    trim_tags(theirs);
    if (version == "0.7.0") {
        drop_nulls(theirs);
        drop_nulls(ours);
        leave_out_later_members(ours, theirs);
    }
    EXPECT_TRUE(same(theirs, ours)) << sent.path << "\nrecorded: " << theirs << "\nsent: " << ours;
}

namespace {

bool same_number(std::string const& a, std::string const& b) {
    return !a.empty() && !b.empty() && std::stod(a) == std::stod(b);
}

/// `chosen` are the lines that the caller set.
void expect_same_headers(value const& expected, SentRequest const& sent,
                         std::set<std::string> const& chosen) {
    // Names in lower case. The connection's are the transport's.
    static std::set<std::string> const of_transport{"connection", "content-length", "host",
                                                    "accept-encoding"};
    // Who we are is ours to say, and two lines mean nothing but Python (C-63).
    static std::set<std::string> const of_python{"user-agent", "x-stainless-runtime",
                                                 "x-stainless-async", "x-stainless-raw-response"};
    std::set<std::string> changing;
    for (auto const& header : expected.at("volatile").as_array()) {
        changing.insert(lower_case(value_to<std::string>(header)));
    }
    for (auto const& line : expected.at("headers").as_array()) {
        auto const name = lower_case(value_to<std::string>(line.at(0)));
        auto const recorded = value_to<std::string>(line.at(1));
        if (of_transport.contains(name)) continue;
        if (of_python.contains(name) && !chosen.contains(name)) continue;
        auto const ours = sent.header(name);
        if (changing.contains(name)) {
            EXPECT_NE(ours, "") << name << " of " << sent.path;
        } else if (name == "accept") {
            // Results are taken in both encodings (C-49).
            EXPECT_NE(ours.find(recorded), std::string::npos) << ours << " of " << sent.path;
        } else if (name == "x-stainless-read-timeout") {
            EXPECT_TRUE(same_number(ours, recorded)) << ours << " of " << sent.path;
        } else {
            EXPECT_EQ(ours, recorded) << name << " of " << sent.path;
        }
    }
}

}  // namespace

void expect_sent(value const& expected, SentRequest const& sent, std::string const& version,
                 std::set<std::string> const& chosen) {
    EXPECT_EQ(sent.method + ' ' + target(sent),
              text(expected, "method") + ' ' + text(expected, "path"));
    expect_same_headers(expected, sent, chosen);
    expect_same_body(expected, sent, version);
}

// Calls -------------------------------------------------------------------------------------------

namespace {

bool empty(ModelInput const& prompt) {
    return std::ranges::all_of(prompt.chunks, [](ModelInputChunk const& chunk) {
        auto const* text = std::get_if<EncodedTextChunk>(&chunk);
        return text != nullptr && text->tokens.empty();
    });
}

void start(Call& call) {
    call.expect_outcome(call.stub.await(call.service->session_id()),
                        [](std::string const& id) -> value {
                            return {{"session_id", id}};
                        });
    call.expect_requests();
}

void beat(Call& call) {
    call.stub.clock->advance(std::chrono::seconds{10} *
                             call.recording().at("requests").as_array().size());
    call.expect_requests();
}

void refresh(Call& call) {
    call.stub.clock->advance(std::chrono::seconds{300} *
                             call.recording().at("requests").as_array().size());
    call.expect_requests();
}

void capabilities(Call& call) {
    call.expect_outcome(call.stub.await(call.service->get_server_capabilities()),
                        [](ServerCapabilities const& got) { return json_of(got); });
    call.expect_requests();
}

void health(Call& call) {
    call.expect_outcome(call.stub.await(call.service->health()),
                        [](std::string const& word) -> value {
                            return {{"status", word}};
                        });
    // A client of its own, session-less, asks for its settings first.
    call.expect_requests();
}

void close(Call& call) {
    std::map<std::string, CloseReason> const reasons{{"success", CloseReason::success},
                                                     {"errored", CloseReason::errored},
                                                     {"interrupted", CloseReason::interrupted}};
    auto const reason = reasons.at(text(call.args(), "status"));
    auto const detail = member<std::string>(call.args(), "detail");
    auto const done = call.stub.await(detail ? call.service->close(reason, *detail)
                                             : call.service->close(reason));
    EXPECT_TRUE(done) << done.error().what();
    call.expect_requests();
}

void create_samplers(Call& call) {
    Result<std::string> last{std::string{}};
    std::vector<SamplingClient> samplers;
    for (auto const& one : call.calls()) {
        SamplerOptions options;
        options.base_model = member<std::string>(one, "base_model").value_or("");
        options.model_path = member<std::string>(one, "model_path").value_or("");
        try {
            samplers.push_back(call.service->create_sampling_client(std::move(options)));
            last = call.stub.await(samplers.back().sampling_session_id());
        } catch (Error const& error) {
            last = error;
        }
    }
    call.expect_outcome(last, [](std::string const& id) -> value {
        return {{"sampling_session_id", id}};
    });
    call.expect_requests();
}

void base_model(Call& call) {
    call.expect_outcome(call.stub.await(call.sampler->get_base_model()),
                        [](std::string const& name) -> value { return value(name); });
    call.expect_requests();
}

Result<SampleResponse> draw(Call& call, SamplingClient const& sampler, value const& args) {
    auto prompt = model_input(args.at("prompt"));
    return call.stub.await(sampler.sample(
        std::move(prompt), sampling_params(args.at("sampling_params")), sample_options(args)));
}

void sample(Call& call) {
    auto const calls = call.calls();
    if (empty(model_input(calls.front().at("prompt")))) {
        auto const refused = draw(call, *call.sampler, calls.front());
        ASSERT_FALSE(refused) << "C-61: an empty prompt is refused here";
        EXPECT_EQ(refused.error().kind(), ErrorKind::validation);
        EXPECT_TRUE(call.stub.seen({}).empty());
        return;
    }
    if (calls.size() == 1) {
        call.expect_outcome(draw(call, *call.sampler, calls.front()),
                            [](SampleResponse const& got) { return json_of(got); });
    } else {
        boost::json::array results;
        for (auto const& args : calls) {
            auto const drawn = draw(call, *call.sampler, args);
            ASSERT_TRUE(drawn) << drawn.error().what();
            results.push_back(json_of(*drawn));
        }
        EXPECT_TRUE(agrees(call.recording().at("result"), results)) << value(results);
    }
    call.stub.settle();
    call.expect_requests();
    call.expect_waits();
}

void sample_by_copy(Call& call) {
    auto const handle = call.stub.await(call.sampler->get_sampler_handle());
    ASSERT_TRUE(handle) << handle.error().what();
    auto const copy = from_sampler_handle(*handle, call.stub.options());
    auto const& expected = call.recording().at("result").as_array();
    for (auto const& one : expected) {
        auto const drawn = draw(call, copy, call.args());
        ASSERT_TRUE(drawn) << drawn.error().what();
        EXPECT_TRUE(agrees(one, json_of(*drawn))) << json_of(*drawn);
    }
    call.expect_requests();
}

void cancelled_sample(Call& call) {
    call.stub.hold("/api/v1/retrieve_future");
    auto const& args = call.args();
    auto pending =
        call.sampler->sample(model_input(args.at("prompt")),
                             sampling_params(args.at("sampling_params")), sample_options(args));
    call.stub.settle();
    pending.cancel();
    auto const outcome = call.stub.await(std::move(pending));
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().kind(), ErrorKind::cancelled);
    call.stub.settle();
    auto sent = call.stub.seen({});
    // Whether a poll was under way is a matter of luck, and the recording was not made of it.
    std::erase_if(sent, [](auto const& one) { return one.path.ends_with("/retrieve_future"); });
    auto const& expected = call.recording().at("requests").as_array();
    ASSERT_EQ(sent.size(), expected.size());
    for (std::size_t i = 0; i < sent.size(); ++i) expect_sent(expected[i], sent[i], newest, {});
}

void logprobs(Call& call) {
    auto prompt = model_input(call.args().at("prompt"));
    auto const last = member<std::int64_t>(call.args(), "prompt_logprobs_last_n").value_or(0);
    call.expect_outcome(
        call.stub.await(call.sampler->compute_logprobs(std::move(prompt), last, CallOptions{})),
        [](std::vector<std::optional<float>> const& got) { return json_of(got); });
    call.expect_requests();
}

void whoami(Call& call) {
    call.expect_outcome(call.stub.await(call.service->whoami()), [](Identity const& got) -> value {
        return {{"user_urn", got.user_urn},
                {"email", got.email ? value(*got.email) : value(nullptr)},
                {"org_urn", got.organization_urn ? value(*got.organization_urn) : value(nullptr)}};
    });
    call.expect_requests();
}

/// The client tells of its own start; what a caller of Python's telemetry object logs has no public
/// call here.
void telemetry(Call& call) {
    if (!call.args().as_object().empty()) return replay_telemetry(call.recording());
    call.stub.clock->advance(20s);
    call.expect_requests();
    call.expect_waits();
}

KnownCalls const& known_calls() {
    static KnownCalls const known = [] {
        KnownCalls all{
            {"ServiceClient", start},
            {"(heartbeat, two beats)", beat},
            {"(dynamic config refresh)", refresh},
            {"ServiceClient.get_server_capabilities", capabilities},
            {"low-level service.health_check", health},
            {"ServiceClient.close", close},
            {"ServiceClient.create_sampling_client", create_samplers},
            {"SamplingClient.get_base_model", base_model},
            {"RestClient.whoami", whoami},
            {"SamplingClient.sample", sample},
            {"SamplingClient.sample (several in a row)", sample},
            {"SamplingClient.sample, copied client", sample_by_copy},
            {"SamplingClient.sample, then cancel", cancelled_sample},
            {"SamplingClient.compute_logprobs", logprobs},
            {"Telemetry", telemetry},
        };
        add_training_calls(all);
        return all;
    }();
    return known;
}

}  // namespace

bool replays_call(value const& recording) {
    return known_calls().contains(text(recording, "call"));
}

void replay_call(value const& recording) {
    Call call{recording};
    known_calls().at(text(recording, "call"))(call);
}

}  // namespace tinkxx::golden
