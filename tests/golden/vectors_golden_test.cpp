// Pure functions: what the official SDK computes, section by section of delays.json.
#include <tinkxx/retry_config.hpp>
#include <tinkxx/types/checkpoint.hpp>

#include "golden/recordings/golden.hpp"
#include "golden/recordings/not_applied.hpp"
#include "golden/recordings/recording.hpp"
#include "service/auth/token_clock.hpp"
#include "service/http/http_retry.hpp"
#include "service/passes/chunking.hpp"
#include "service/passes/combining.hpp"
#include "service/requests/submit_retry.hpp"
#include "service/retry/retry_rules.hpp"
#include "service/text/query.hpp"
#include "service/text/retry_after.hpp"
#include "wire/sampling/sample.hpp"
#include "wire/session/jwt.hpp"
#include "wire/values/tensor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <sstream>

namespace tinkxx::golden {
namespace {

double seconds(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e9; }

std::chrono::nanoseconds nanoseconds(double seconds) {
    return std::chrono::nanoseconds{static_cast<std::int64_t>(seconds * 1e9)};
}

void http_retry_delay(value const& vector) {
    auto const chance = value_to<double>(vector.at("random"));
    auto const& counts = vector.at("retries_taken").as_array();
    auto const& delays = vector.at("delay").as_array();
    ASSERT_EQ(counts.size(), delays.size());
    for (std::size_t i = 0; i < counts.size(); ++i) {
        auto const delay = service::HttpRetry::backoff(value_to<int>(counts[i]), chance);
        EXPECT_NEAR(seconds(delay), value_to<double>(delays[i]), 1e-9)
            << counts[i] << " retries, draw " << chance;
    }
}

void http_should_retry(value const& vector) {
    Headers headers;
    if (auto const wish = member<std::string>(vector, "x-should-retry")) {
        headers.add("x-should-retry", *wish);
    }
    EXPECT_EQ(service::HttpRetry::retries_status(value_to<int>(vector.at("status")), headers),
              vector.at("retry").as_bool());
}

/// A number that Python reads there too, but for its underscores between digits.
std::optional<double> number(std::string const* text) {
    if (text == nullptr || text->find('_') != std::string::npos) return std::nullopt;
    std::istringstream in{*text};
    double read = 0;
    if (!(in >> read) || !in.eof()) return std::nullopt;
    return read;
}

void retry_after(value const& vector) {
    Headers headers;
    for (auto const& line : vector.at("headers").as_object()) {
        headers.add(std::string{line.key()}, value_to<std::string>(line.value()));
    }
    auto const backoff = service::HttpRetry::backoff(0, 0.5);
    auto expected = value_to<double>(vector.at("wait_first_retry_random_0.5"));
    auto const most = seconds(service::longest_retry_after);
    auto const* plain = headers.find("retry-after");
    auto const ms = number(headers.find("retry-after-ms"));
    auto const hint = number(plain);
    // C-46: the official SDK drops every hint out of range. Here one that is
    // not above zero is skipped, and the next form read; one that is too long is cut.
    if (ms && *ms <= 0 && hint && *hint > 0 && *hint <= most) expected = *hint;
    auto const parsed = vector.at("parsed_seconds");
    if (parsed.is_double() && parsed.get_double() > most) expected = most;
    if (plain != nullptr && plain->find('_') != std::string::npos) {
        expected = seconds(backoff);  // digits with underscores are numbers to Python alone
    }
    WallTime const now{
        std::chrono::seconds{static_cast<std::int64_t>(value_to<double>(vector.at("now_unix")))}};
    auto const wait =
        service::retry_after(headers, now, service::longest_retry_after).value_or(backoff);
    EXPECT_NEAR(seconds(wait), expected, 1e-9);
}

QueryValue query_value(value const& given) {
    switch (given.kind()) {
        case boost::json::kind::null:
            return nullptr;
        case boost::json::kind::bool_:
            return given.get_bool();
        case boost::json::kind::int64:
            return given.get_int64();
        case boost::json::kind::uint64:
            return given.get_uint64();
        case boost::json::kind::double_:
            return given.get_double();
        case boost::json::kind::string:
            return value_to<std::string>(given);
        case boost::json::kind::array: {
            QueryValue::List list;
            for (auto const& item : given.get_array()) list.push_back(query_value(item));
            return list;
        }
        case boost::json::kind::object:
            break;
    }
    QueryValue::Parts parts;
    for (auto const& part : given.get_object()) {
        parts.emplace_back(part.key(), query_value(part.value()));
    }
    return parts;
}

std::multiset<std::string> parts_of(std::string const& text) {
    std::multiset<std::string> parts;
    std::istringstream in{text};
    for (std::string part; std::getline(in, part, '&');) parts.insert(part);
    return parts;
}

void query_string(value const& vector) {
    Query query;
    for (auto const& parameter : vector.at("params").as_object()) {
        query.emplace_back(parameter.key(), query_value(parameter.value()));
    }
    // The recording sorted the parameters, so their order is not compared.
    EXPECT_EQ(parts_of(service::query_string(query)), parts_of(text(vector, "text")));
}

void submit_loop_retryable_status(value const& vector) {
    Error const error{
        {.kind = ErrorKind::status, .http_status = value_to<int>(vector.at("status"))}};
    EXPECT_EQ(service::repeats_submit(error), vector.at("retry").as_bool());
}

void sampling_estimate_bytes(value const& vector) {
    EXPECT_EQ(wire::estimate_prompt_bytes(model_input(vector.at("model_input"))),
              value_to<std::int64_t>(vector.at("bytes")));
}

void dmel_length(value const& vector) {
    auto const hex = text(vector, "bytes_hex");
    std::string bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2) {
        bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    }
    auto const& expected = vector.at("length");
    // More tokens than an int64 holds are refused here.
    if (expected.is_object() || expected.is_uint64()) {
        EXPECT_THROW((void)length(DmelChunk{bytes}), ValidationError);
    } else {
        EXPECT_EQ(length(DmelChunk{bytes}), value_to<std::int64_t>(expected));
    }
}

void jwt_expiry(value const& vector) {
    auto const claims = wire::decode_jwt(text(vector, "token"));
    auto const* expiry = find(vector, "expiry");
    std::optional<double> ours;
    if (claims && claims->exp) {
        ours = std::chrono::duration<double>{claims->exp->time_since_epoch()}.count();
    }
    std::optional<double> theirs;
    if (expiry != nullptr && expiry->is_number()) theirs = expiry->to_number<double>();
    EXPECT_EQ(ours, theirs);
    if (find(vector, "now_unix") == nullptr) return;
    WallTime const now{nanoseconds(value_to<double>(vector.at("now_unix")))};
    service::TokenClock clock;
    (void)clock.on_token(claims ? claims->exp : std::nullopt, now);
    EXPECT_EQ(clock.fresh(now), value_to<double>(vector.at("seconds_left")) > 60);
}

RetryConfig retry_config(value const& given) {
    auto const time = [&given](char const* name, std::chrono::milliseconds other) {
        auto const seconds = member<double>(given, name);
        return seconds ? std::chrono::milliseconds{static_cast<std::int64_t>(*seconds * 1000)}
                       : other;
    };
    RetryConfig config;
    config.max_connections = member<std::int64_t>(given, "max_connections");
    config.progress_timeout = time("progress_timeout", config.progress_timeout);
    config.retry_delay_base = time("retry_delay_base", config.retry_delay_base);
    config.retry_delay_max = time("retry_delay_max", config.retry_delay_max);
    config.jitter_factor = member<double>(given, "jitter_factor").value_or(config.jitter_factor);
    return config;
}

void retry_config_defaults(value const& vector) {
    RetryConfig defaults;
    EXPECT_EQ(defaults.enable_retry_logic, vector.at("enable_retry_logic").as_bool());
    EXPECT_EQ(defaults.enable_stuck_detection, vector.at("enable_stuck_detection").as_bool());
    // C-02: empty here, which is this number unless the server names another.
    EXPECT_EQ(defaults.max_connections, std::nullopt);
    auto given = retry_config(vector);
    EXPECT_EQ(given.max_connections, 1000);
    given.max_connections.reset();
    EXPECT_EQ(given, defaults);
}

void retry_config_validation(value const& vector) {
    auto const config = retry_config(vector);
    if (vector.at("ok").as_bool()) {
        EXPECT_NO_THROW(config.validate());
    } else {
        EXPECT_THROW(config.validate(), ValidationError);
    }
}

/// Whether every time is one of whole milliseconds, as times are given here.
bool expressible(value const& config) {
    for (auto const* name : {"retry_delay_base", "retry_delay_max"}) {
        auto const given = member<double>(config, name);
        if (given && (*given < 0.001 || *given > 1e9)) return false;
    }
    return true;
}

void sampling_retry_delay(value const& vector) {
    if (!expressible(vector.at("config"))) return;
    auto const config = retry_config(vector.at("config"));
    auto const chance = value_to<double>(vector.at("random"));
    std::int64_t attempt = std::stoll(text(vector, "attempts"));
    for (auto const& run : vector.at("delay_rle").as_array()) {
        for (auto count = value_to<int>(run.at(1)); count > 0; --count, ++attempt) {
            EXPECT_NEAR(seconds(service::retry_delay(config, attempt, chance)),
                        value_to<double>(run.at(0)), 1e-8)
                << "attempt " << attempt;
        }
    }
}

void chunk_splits(value const& vector) {
    std::vector<std::int64_t> sizes;
    for (auto const& run : vector.at("item_bytes_rle").as_array()) {
        sizes.insert(sizes.end(), value_to<std::size_t>(run.at(1)),
                     value_to<std::int64_t>(run.at(0)));
    }
    std::vector<std::size_t> lengths;
    for (auto const& chunk :
         service::split_sizes(sizes, {.items = value_to<std::int64_t>(vector.at("max_len")),
                                     .bytes = value_to<std::int64_t>(vector.at("max_bytes"))})) {
        lengths.push_back(chunk.count);
    }
    EXPECT_EQ(lengths, value_to<std::vector<std::size_t>>(vector.at("chunk_lengths")));
}

Datum datum(value const& json) {
    Datum out{.model_input = model_input(json.at("model_input"))};
    for (auto const& input : json.at("loss_fn_inputs").as_object()) {
        std::string const name{input.key()};
        if (text(input.value(), "kind") == "list") {
            out.loss_fn_inputs.set(name, value_to<std::vector<double>>(input.value().at("data")));
        } else {
            wire::JsonIn::Failure failure;
            out.loss_fn_inputs.set(name, wire::JsonIn{&input.value(), failure}.as<TensorData>());
            EXPECT_FALSE(failure.noted);
        }
    }
    return out;
}

void fwdbwd_estimate_bytes(value const& vector) {
    EXPECT_EQ(service::estimate_bytes(datum(vector.at("datum")), wire::Encoding::protobuf),
              value_to<std::int64_t>(vector.at("bytes")));
}

void metric_hash(value const& vector) {
    auto const values = value_to<std::vector<double>>(vector.at("values"));
    ASSERT_EQ(text(vector, "reduction"), "hash2");
    EXPECT_EQ(service::reduce_hash2(values), value_to<std::uint64_t>(vector.at("result")));
}

void metric_reductions_known(value const& vector) {
    for (auto const& name : vector.as_array()) {
        auto const known = service::known_reductions();
        EXPECT_NE(std::ranges::find(known, value_to<std::string>(name)), known.end()) << name;
    }
}

void tinker_path(value const& vector) {
    auto const path = text(vector, "path");
    auto const parsed = parse_checkpoint_path(path);
    // R-REST-01: no part is empty.
    bool const whole = !path.ends_with('/') && !path.starts_with("tinker:///");
    if (find(vector, "error") != nullptr || !whole) {
        ASSERT_FALSE(parsed) << path;
        EXPECT_NE(std::string{parsed.error().what()}.find('"' + path + '"'), std::string::npos);
        return;
    }
    ASSERT_TRUE(parsed) << parsed.error().what();
    EXPECT_EQ(parsed->training_run_id, text(vector, "training_run_id"));
    EXPECT_EQ(parsed->checkpoint_id(), text(vector, "checkpoint_id"));
    EXPECT_EQ(checkpoint_type(parsed->kind), text(vector, "checkpoint_type"));
    EXPECT_EQ(to_string(*parsed), path);
}

std::map<std::string, std::function<void(value const&)>> const& known_sections() {
    static std::map<std::string, std::function<void(value const&)>> const known{
        {"chunk_splits", chunk_splits},
        {"dmel_length", dmel_length},
        {"fwdbwd_estimate_bytes", fwdbwd_estimate_bytes},
        {"http_retry_delay", http_retry_delay},
        {"http_should_retry", http_should_retry},
        {"jwt_expiry", jwt_expiry},
        {"metric_hash", metric_hash},
        {"metric_reductions_known", metric_reductions_known},
        {"query_string", query_string},
        {"retry_after", retry_after},
        {"retry_config_defaults", retry_config_defaults},
        {"retry_config_validation", retry_config_validation},
        {"sampling_estimate_bytes", sampling_estimate_bytes},
        {"sampling_retry_delay", sampling_retry_delay},
        {"submit_loop_retryable_status", submit_loop_retryable_status},
        {"tinker_path", tinker_path},
    };
    return known;
}

class GoldenVectors : public ::testing::TestWithParam<std::string> {};

// R-RETRY-03, R-RETRY-30, R-RETRY-70, R-RETRY-71, R-RETRY-80, R-EXT-90, R-WIRE-02, R-WIRE-08
// R-SAMP-27, R-AUTH-11, R-AUTH-13, R-TRAIN-20, R-TRAIN-22, R-TRAIN-42, R-REST-01
TEST_P(GoldenVectors, AreThoseOfTheOfficialSdk) {
    auto const& section = GetParam();
    auto const found = known_sections().find(section);
    if (found == known_sections().end()) {
        auto const listed = not_applied("section", section);
        ASSERT_TRUE(listed) << section
                            << ": nobody here knows that section; see wire-not-applied.txt";
        GTEST_SKIP() << (listed->verdict == Verdict::waits ? "waits: " : "never: ")
                     << listed->reason;
    }
    auto const vectors = newest_vectors(section);
    EXPECT_FALSE(vectors.empty());
    for (auto const& vector : vectors) {
        SCOPED_TRACE(boost::json::serialize(vector).substr(0, 500));
        found->second(vector);
    }
}

// The vectors of a section that describe an older release.
boost::json::array old_vectors(std::string const& section, std::string_view release) {
    auto const all = load("delays.json");
    for (auto const& entry : all.at(section).as_array()) {
        for (auto const& version : entry.at("versions").as_array()) {
            if (version.as_string() == release) return entry.at("vectors").as_array();
        }
    }
    return {};
}

TEST(GoldenOldVectors, EstimatesOfJsonAreThoseOfTheReleaseThatSentIt) {  // R-TRAIN-22
    if (!has("delays.json")) GTEST_SKIP() << "the folder has none";
    for (auto const& vector : old_vectors("fwdbwd_estimate_bytes", "0.7.0")) {
        EXPECT_EQ(service::estimate_bytes(datum(vector.at("datum")), wire::Encoding::json),
                  value_to<std::int64_t>(vector.at("bytes")));
    }
}

TEST(GoldenOldVectors, HashesAreThoseOfTheReleaseThatHadThem) {  // R-TRAIN-42
    if (!has("delays.json")) GTEST_SKIP() << "the folder has none";
    for (auto const& vector : old_vectors("metric_hash", "0.25.0")) {
        auto const values = value_to<std::vector<double>>(vector.at("values"));
        EXPECT_EQ(service::reduce_hash_unordered(values),
                  value_to<std::int64_t>(vector.at("result")));
    }
}

INSTANTIATE_TEST_SUITE_P(golden_wire, GoldenVectors, ::testing::ValuesIn(sections()),
                         [](auto const& one) { return one.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenVectors);

}  // namespace
}  // namespace tinkxx::golden
