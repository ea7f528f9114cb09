#include "golden/replay/expect_sent.hpp"

#include "golden/recordings/golden.hpp"
#include "golden/recordings/pass_body.hpp"
#include "golden/replay/stub_service.hpp"
#include "wire/json/json.hpp"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace tinkxx::golden {

using testing::SentRequest;

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

}  // namespace

std::string sha256(std::string_view bytes) {
    std::string digest(32, '\0');
    unsigned size = 0;
    EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), &size,
               EVP_sha256(), nullptr);
    return hex(digest);
}

std::string lower_case(std::string text) {
    std::ranges::transform(text, text.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return text;
}

// Decisions ---------------------------------------------------------------------------------------

namespace {

/// Gives a repeated submit the number of the first one, and those that follow the numbers that are
/// left. A submit that was refused is repeated by the next one at its path.
void number_repeats_alike(std::vector<value>& requests, std::string_view path, char const* name) {
    std::int64_t surplus = 0;
    std::optional<std::int64_t> refused;
    for (auto& request : requests) {
        if (text(request, "path") != path) continue;
        auto* const body =
            find(request, "body_json") == nullptr ? nullptr : &request.at("body_json");
        if (body == nullptr || find(*body, name) == nullptr) continue;
        auto& number = body->at(name);
        auto const recorded = value_to<std::int64_t>(number);
        if (refused) surplus += recorded - *refused;
        number = recorded - surplus;
        auto const status = member<int>(request.at("response"), "status").value_or(0);
        refused = status == 200 ? std::nullopt : std::optional{recorded};
    }
}

/// The token that the stub gave for another one, if it did.
std::optional<std::string> exchanged_token(std::vector<value> const& requests) {
    for (auto const& request : requests) {
        if (!text(request, "path").ends_with("/auth/token")) continue;
        return text(boost::json::parse(text(request.at("response"), "body_text")), "jwt");
    }
    return std::nullopt;
}

bool saves(value const& request) {
    return text(request, "path").find("/save_") != std::string::npos;
}

/// The first pass of a custom loss has weights, if only zeros (R-TRAIN-70).
void add_zero_weights(value& body) {
    auto* const input = body.is_object() ? body.get_object().if_contains("forward_input") : nullptr;
    if (input == nullptr) return;
    for (auto& datum : input->at("data").as_array()) {
        auto& inputs = datum.at("loss_fn_inputs").as_object();
        if (inputs.contains("weights") || !inputs.contains("target_tokens")) continue;
        auto weights = inputs.at("target_tokens").as_object();
        weights["dtype"] = "float32";
        for (auto& each : weights.at("data").as_array()) each = 0.0;
        inputs["weights"] = std::move(weights);
    }
}

/// A model made from a checkpoint has the adapter of the checkpoint (R-TRAIN-81).
void take_over_adapter(std::vector<value>& requests) {
    boost::json::object adapter;
    for (auto& request : requests) {
        if (text(request, "path").ends_with("/weights_info")) {
            adapter = boost::json::parse(text(request.at("response"), "body_text")).as_object();
        }
        if (adapter.empty() || !text(request, "path").ends_with("/create_model")) continue;
        auto& lora = request.at("body_json").at("lora_config").as_object();
        for (auto const* flag : {"train_unembed", "train_mlp", "train_attn"}) {
            auto const* given = adapter.if_contains(flag);
            lora[flag] = given == nullptr || given->is_null() ? value(true) : *given;
        }
    }
}

/// Lists, runs and sessions are asked for with the scope that 0.7.0 took for granted, and the URL
/// of an archive as JSON, which it did not read.
void say_whose(value& request) {
    auto const path = text(request, "path");
    auto const end = path.find('?');
    auto const place = path.substr(0, end);
    constexpr std::string_view runs = "/api/v1/training_runs";
    bool const one_run = place.starts_with(std::string{runs} + '/') &&
                         place.find('/', runs.size() + 1) == std::string::npos;
    if (place == runs || one_run || place.starts_with("/api/v1/sessions")) {
        request.as_object()["path"] =
            path + (end == std::string::npos ? "?" : "&") + "access_scope=owned";
    }
    for (auto& line : request.at("headers").as_array()) {
        if (line.at(1) == "application/gzip") line.at(1) = "application/json";
    }
}

/// What a release of today does otherwise than 0.7.0, and we do as well.
void bring_up_to_date(std::vector<value>& requests, value const& recording) {
    // A repeated submit keeps its number (R-SAMP-05).
    number_repeats_alike(requests, "/api/v1/asample", "seq_id");
    take_over_adapter(requests);
    auto const custom = text(recording, "call").ends_with("forward_backward_custom");
    for (auto& request : requests) {
        if (custom && find(request, "body_json") != nullptr) {
            add_zero_weights(request.at("body_json"));
        }
        say_whose(request);
        if (!saves(request)) continue;
        for (auto& line : request.at("headers").as_array()) {
            if (line.at(0) == "x-stainless-retry-count") line.at(1) = "0";
        }
    }
}

}  // namespace

bool repeats_by_loop(value const& recording) {
    return text(recording, "sdk_version") == "0.7.0" &&
           std::ranges::any_of(recording.at("requests").as_array(), saves);
}

std::vector<value> expected_requests(value const& recording) {
    auto const& recorded = recording.at("requests").as_array();
    std::vector<value> requests{recorded.begin(), recorded.end()};
    if (text(recording, "sdk_version") == "0.7.0") bring_up_to_date(requests, recording);
    // C-52: a repeated save is the same request.
    number_repeats_alike(requests, "/api/v1/save_weights_for_sampler", "sampling_session_seq_id");
    // C-25: the token handed to load is the exchanged one, wherever tokens are exchanged.
    if (auto const token = exchanged_token(requests)) {
        auto const given = member<std::string>(recording.at("args"), "weights_access_token");
        for (auto& request : requests) {
            if (!given || !text(request, "path").ends_with("/load_weights")) continue;
            auto& body = request.at("body_json").as_object();
            if (body.contains("weights_access_token")) body["weights_access_token"] = *token;
        }
    }
    return requests;
}

// Bodies ------------------------------------------------------------------------------------------

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

/// Nulls, and the settings of a loss without any: a map here, which is empty or not.
void drop_nulls(value& json) {
    if (json.is_array()) {
        for (auto& one : json.get_array()) drop_nulls(one);
    }
    if (!json.is_object()) return;
    std::vector<std::string> names;
    for (auto& one : json.get_object()) {
        drop_nulls(one.value());
        bool const no_settings = one.key() == "loss_fn_config" && one.value().is_object() &&
                                 one.value().get_object().empty();
        if (one.value().is_null() || no_settings) names.emplace_back(one.key());
    }
    for (auto const& name : names) json.get_object().erase(name);
}

/// 0.7.0 left defaults and type tags out, wrote nulls, and did not know the rest.
bool of_later_release(std::string_view name, value const& given) {
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
    auto const* known = later.if_contains(name);
    return known != nullptr && (known->is_null() || same(*known, given));
}

/// Takes out of `ours` what such a release does not send.
void leave_out_later_members(value& ours, value const& recorded) {
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
        } else if (of_later_release(one.key(), one.value())) {
            names.emplace_back(one.key());
        }
    }
    for (auto const& name : names) ours.get_object().erase(name);
}

/// As above, where nothing is recorded to compare with.
void leave_out_later_members(value& ours) {
    if (ours.is_array()) {
        for (auto& one : ours.get_array()) leave_out_later_members(one);
    }
    if (!ours.is_object()) return;
    std::vector<std::string> names;
    for (auto& one : ours.get_object()) {
        leave_out_later_members(one.value());
        if (of_later_release(one.key(), one.value())) names.emplace_back(one.key());
    }
    for (auto const& name : names) ours.get_object().erase(name);
    for (auto const* input : {"forward_backward_input", "forward_input"}) {
        if (auto* const pass = ours.get_object().if_contains(input)) {
            pass->as_object().emplace("loss_fn_config", nullptr);
        }
    }
}

/// The numbers of a float32 tensor are those floats, however many digits they are written with.
void round_tensors(value& json) {
    if (json.is_array()) {
        for (auto& one : json.get_array()) round_tensors(one);
    }
    if (!json.is_object()) return;
    auto& object = json.get_object();
    auto const* dtype = object.if_contains("dtype");
    auto* data = object.if_contains("data");
    if (dtype != nullptr && *dtype == "float32" && data != nullptr && data->is_array()) {
        for (auto& one : data->get_array()) {
            if (one.is_number()) one = static_cast<double>(one.to_number<float>());
        }
        return;
    }
    for (auto& one : object) round_tensors(one.value());
}

std::string python_float(double number) {
    auto const size = std::abs(number);
    if (size < 1e16 && number == std::floor(number)) {
        auto const whole = std::to_string(static_cast<std::int64_t>(number)) + ".0";
        return std::signbit(number) && number == 0 ? '-' + whole : whole;
    }
    std::array<char, 32> digits{};
    auto const form =
        size >= 1e-4 && size < 1e16 ? std::chars_format::fixed : std::chars_format::scientific;
    auto const end = std::to_chars(digits.data(), digits.data() + digits.size(), number, form);
    return {digits.data(), end.ptr};
}

/// The text of a message as Python writes it, its members in the order of their names.
void write_ordered(std::string& out, value const& json) {
    auto const list = [&out](char open, auto const& items, char close, auto write) {
        out += open;
        bool first = true;
        for (auto const& item : items) {
            if (!std::exchange(first, false)) out += ',';
            write(item);
        }
        out += close;
    };
    if (json.is_array()) {
        return list('[', json.get_array(), ']', [&](value const& one) { write_ordered(out, one); });
    }
    if (json.is_object()) {
        std::map<std::string, value const*> ordered;
        for (auto const& one : json.get_object()) ordered[one.key()] = &one.value();
        return list('{', ordered, '}', [&](auto const& one) {
            out += boost::json::serialize(one.first) + ':';
            write_ordered(out, *one.second);
        });
    }
    out += json.is_double() ? python_float(json.get_double()) : boost::json::serialize(json);
}

/// A long JSON body, recorded by its length and hash.
void expect_same_text(value const& expected, SentRequest const& sent, std::string const& version) {
    auto ours = wire::parse_json(sent.path, sent.body);
    ASSERT_TRUE(ours) << sent.path;
    if (version == "0.7.0") leave_out_later_members(*ours);
    round_tensors(*ours);
    std::string written;
    write_ordered(written, *ours);
    EXPECT_EQ(written.size(), value_to<std::size_t>(expected.at("body_length"))) << sent.path;
    EXPECT_EQ(sha256(written), text(expected, "body_sha256"))
        << sent.path << ": " << written.substr(0, 500);
}

}  // namespace

/// A body that is no JSON, or too long to be recorded.
static void expect_same_bytes(value const& expected, SentRequest const& sent,
                              RecordedSender const& sender) {
    if (!is_protobuf(sent)) return expect_same_text(expected, sent, sender.version);
    bool const zstd = member<bool>(expected, "body_zstd").value_or(false);
    EXPECT_EQ(sent.header("Content-Encoding"), zstd ? "zstd" : "");
    auto plain = plain_body(sent);
    // R-TRAIN-39: later releases repeat the numbers of a loss in another member.
    if (sender.version != newest) plain = without_field(plain, 7);
    if (zstd) {
        EXPECT_EQ(plain.size(), value_to<std::size_t>(expected.at("body_uncompressed_length")));
        EXPECT_EQ(sha256(plain), text(expected, "body_uncompressed_sha256"));
    } else if (find(expected, "body_base64") != nullptr) {
        auto const recorded = bytes_of(expected, "body_base64");
        if (sender.rounds && nearly_same_pass(recorded, plain)) return;
        EXPECT_EQ(hex(plain), hex(recorded));
    } else {
        EXPECT_EQ(plain.size(), value_to<std::size_t>(expected.at("body_length")));
        EXPECT_EQ(sha256(plain), text(expected, "body_sha256"));
    }
}

void expect_same_body(value const& expected, SentRequest const& sent,
                      RecordedSender const& sender) {
    auto const* recorded = find(expected, "body_json");
    bool const bytes = find(expected, "body_base64") != nullptr ||
                       find(expected, "body_sha256") != nullptr ||
                       find(expected, "body_uncompressed_sha256") != nullptr;
    if (bytes) return expect_same_bytes(expected, sent, sender);
    if (recorded == nullptr) {
        EXPECT_EQ(sent.body, "") << sent.path;
        return;
    }
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
    round_tensors(ours);
    round_tensors(theirs);
    if (sender.version == "0.7.0") {
        drop_nulls(theirs);
        drop_nulls(ours);
        leave_out_later_members(ours, theirs);
    }
    EXPECT_TRUE(same(theirs, ours)) << sent.path << "\nrecorded: " << theirs << "\nsent: " << ours;
}

// Headers -----------------------------------------------------------------------------------------

namespace {

bool same_number(std::string const& a, std::string const& b) {
    return !a.empty() && !b.empty() && std::stod(a) == std::stod(b);
}

void expect_same_headers(value const& expected, SentRequest const& sent,
                         RecordedSender const& sender) {
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
    std::set<std::string> known;
    for (auto const& line : expected.at("headers").as_array()) {
        auto const name = lower_case(value_to<std::string>(line.at(0)));
        known.insert(name);
        auto const recorded = value_to<std::string>(line.at(1));
        if (of_transport.contains(name)) continue;
        if (of_python.contains(name) && !sender.chosen.contains(name)) continue;
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
    for (auto const& line : sent.headers) {
        auto const name = lower_case(std::string{line.name});
        if (of_transport.contains(name) || of_python.contains(name)) continue;
        // R-WIRE-01: these came with 0.36.0.
        if (sender.version != newest && name.starts_with("x-sdk-")) continue;
        EXPECT_TRUE(known.contains(name)) << name << " of " << sent.path << " is not recorded";
    }
}

}  // namespace

void expect_sent(value const& expected, SentRequest const& sent, RecordedSender const& sender) {
    EXPECT_EQ(sent.method + ' ' + target(sent),
              text(expected, "method") + ' ' + text(expected, "path"));
    expect_same_headers(expected, sent, sender);
    expect_same_body(expected, sent, sender);
}

}  // namespace tinkxx::golden
