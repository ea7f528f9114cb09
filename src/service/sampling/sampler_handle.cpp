#include "service/sampling/sampler_handle.hpp"

#include <tinkxx/redaction.hpp>

#include "wire/json/base64.hpp"
#include "wire/json/json.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <utility>

namespace tinkxx::service {

namespace {

namespace json = boost::json;

constexpr std::size_t longest_handle = std::size_t{1} << 20U;

enum class Secrets : std::uint8_t { left_out, kept };

std::string encode(SamplerSnapshot const& snapshot, Secrets secrets) {
    bool const all = secrets == Secrets::kept;
    json::object headers;
    for (auto const& [name, value] : snapshot.header_overrides) {
        if (all || !is_secret_header(name)) headers[name] = value;
    }
    json::object handle;
    handle["session_id"] = snapshot.session.session_id;
    handle["sampling_session_id"] = snapshot.sampling_session_id;
    handle["record_stability_info"] = snapshot.record_stability_info;
    handle["base_url"] = snapshot.base_url;
    handle["api_key"] = nullptr;
    if (all && snapshot.api_key) handle["api_key"] = *snapshot.api_key;
    if (all && snapshot.credential_cmd) handle["credential_cmd"] = *snapshot.credential_cmd;
    handle["default_headers_overrides"] = std::move(headers);
    handle["client_config"] = json::parse(wire::encode_client_flags(snapshot.session.flags));
    handle["dynamic_config"] = json::parse(wire::encode_dynamic_flags(snapshot.session.dynamic));
    return wire::base64url(json::serialize(handle));
}

ErrorDetails refused(std::string what) {
    ErrorDetails details;
    details.kind = ErrorKind::validation;
    details.category = ErrorCategory::user;
    details.field = "handle";
    details.message = "this is no sampler handle: " + std::move(what) +
                      "; copy the whole text that get_sampler_handle gave";
    return details;
}

/// Null counts as missing.
json::value const* member(json::object const& object, std::string_view name) {
    auto const* value = object.if_contains({name.data(), name.size()});
    return value != nullptr && !value->is_null() ? value : nullptr;
}

std::optional<std::string> text(json::object const& object, std::string_view name) {
    auto const* value = member(object, name);
    if (value == nullptr || !value->is_string()) return std::nullopt;
    return std::string{value->get_string()};
}

}  // namespace

std::string encode_sampler_handle(SamplerSnapshot const& snapshot) {
    return encode(snapshot, Secrets::left_out);
}

std::string encode_sampler_export(SamplerSnapshot const& snapshot) {
    return encode(snapshot, Secrets::kept);
}

Result<SamplerSnapshot> decode_sampler_handle(std::string_view handle) {
    if (handle.size() > longest_handle) return refused("it is too long");
    auto const bytes = wire::decode_base64url(handle);
    if (!bytes) return refused("it is not base64url");
    auto const parsed = wire::parse_json("sampler handle", *bytes);
    if (!parsed || !parsed->is_object()) return refused("it holds no JSON object");
    auto const& object = parsed->get_object();

    SamplerSnapshot snapshot;
    auto const required = [&object](std::string_view name, std::string& out) {
        auto value = text(object, name);
        if (value) out = std::move(*value);
        return !out.empty();
    };
    if (!required("session_id", snapshot.session.session_id)) return refused("no session_id");
    if (!required("sampling_session_id", snapshot.sampling_session_id)) {
        return refused("no sampling_session_id");
    }
    if (!required("base_url", snapshot.base_url)) return refused("no base_url");
    if (auto const* flag = member(object, "record_stability_info")) {
        if (!flag->is_bool()) return refused("record_stability_info is neither true nor false");
        snapshot.record_stability_info = flag->get_bool();
    }
    snapshot.api_key = text(object, "api_key");
    snapshot.credential_cmd = text(object, "credential_cmd");
    if (auto const* headers = member(object, "default_headers_overrides")) {
        auto const* lines = headers->if_object();
        if (lines == nullptr) return refused("default_headers_overrides is no object");
        for (auto const& line : *lines) {
            if (!line.value().is_string()) return refused("a header has no text");
            snapshot.header_overrides.add(std::string{line.key()},
                                          std::string{line.value().get_string()});
        }
    }
    if (auto const* config = member(object, "client_config")) {
        auto flags = wire::decode_client_flags(json::serialize(*config));
        if (!flags) return refused("its client_config cannot be read");
        snapshot.session.flags = std::move(*flags);
    }
    if (auto const* config = member(object, "dynamic_config")) {
        auto flags = wire::decode_dynamic_flags(json::serialize(*config));
        if (!flags) return refused("its dynamic_config cannot be read");
        snapshot.session.dynamic = *flags;
    }
    return snapshot;
}

std::int64_t random_clone_id(std::uint64_t high, std::uint64_t low) noexcept {
    constexpr std::uint64_t copies = sequence_ids_per_copy;
    // (high · 2⁶⁴ + low) mod 10⁹; the parts stay far below 2⁶⁴.
    constexpr std::uint64_t shift = (~std::uint64_t{0} % copies + 1) % copies;
    return static_cast<std::int64_t>(((high % copies) * shift + low % copies) % copies) + 1;
}

}  // namespace tinkxx::service
