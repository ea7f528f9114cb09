#include "client/resolved_options.hpp"

#include <tinkxx/credentials.hpp>
#include <tinkxx/redaction.hpp>

#include "service/http/standard_headers.hpp"
#include "service/text/checks.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <utility>
#include <variant>

namespace tinkxx::client {

namespace {

namespace json = boost::json;

constexpr std::string_view default_base_url =
    "https://tinker.thinkingmachines.dev/services/tinker-prod";

void require(std::optional<ErrorDetails> problem) {
    if (problem) throw ValidationError{std::move(*problem)};
}

std::string_view trim(std::string_view text) noexcept {
    auto const first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string lower(std::string_view text) {
    std::string out{text};
    std::ranges::transform(out, out.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return out;
}

// Empty counts as unset.
std::string variable(Environment const& environment, char const* name) {
    return environment(name).value_or(std::string{});
}

std::string given_or(std::string const& given, Environment const& environment, char const* name) {
    return given.empty() ? variable(environment, name) : given;
}

// Parts between commas, trimmed, each once, none of them blank (R-CONF-03, C-56).
std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    while (!text.empty()) {
        auto const comma = std::min(text.find(','), text.size());
        std::string word{trim(text.substr(0, comma))};
        if (!word.empty() && std::ranges::find(words, word) == words.end()) {
            words.push_back(std::move(word));
        }
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return words;
}

std::vector<std::string> once_each(std::vector<std::string> const& given) {
    std::vector<std::string> words;
    for (auto const& one : given) {
        std::string word{trim(one)};
        if (!word.empty() && std::ranges::find(words, word) == words.end()) {
            words.push_back(std::move(word));
        }
    }
    return words;
}

json::object object_of(Environment const& environment, char const* name) {
    auto const text = variable(environment, name);
    if (trim(text).empty()) return {};
    json::error_code failed;
    auto parsed = json::parse(text, failed);
    if (failed || !parsed.is_object()) {
        // The text itself may hold credentials.
        throw ValidationError{
            service::invalid_field(name, std::string{redaction_marker}, "must be a JSON object")};
    }
    return std::move(parsed.get_object());
}

std::string text_of(json::value const& value) {
    if (value.is_string()) return std::string{value.get_string()};
    return json::serialize(value);
}

// Null values are dropped, others turned into text (R-CONF-06).
Headers headers_of(Environment const& environment, char const* name) {
    Headers headers;
    for (auto const& entry : object_of(environment, name)) {
        if (!entry.value().is_null()) headers.add(std::string{entry.key()}, text_of(entry.value()));
    }
    require(service::check_headers(headers, name));
    return headers;
}

QueryValue query_value(json::value const& value) {
    if (value.is_null()) return nullptr;
    if (value.is_bool()) return value.get_bool();
    if (value.is_int64()) return value.get_int64();
    if (value.is_double()) return value.get_double();
    if (value.is_array()) {
        QueryValue::List list;
        for (auto const& item : value.get_array()) list.push_back(query_value(item));
        return list;
    }
    if (value.is_object()) {
        QueryValue::Parts parts;
        for (auto const& part : value.get_object()) {
            parts.emplace_back(part.key(), query_value(part.value()));
        }
        return parts;
    }
    return text_of(value);
}

Query query_of(ClientOptions const& options, Environment const& environment) {
    Query query;
    for (auto const& entry : object_of(environment, "TINKXX_DEFAULT_QUERY")) {
        bool const given = std::ranges::any_of(options.default_query, [&entry](auto const& own) {
            return own.first == std::string_view{entry.key()};
        });
        if (!given) query.emplace_back(entry.key(), query_value(entry.value()));
    }
    query.insert(query.end(), options.default_query.begin(), options.default_query.end());
    for (auto const& [name, value] : query) {
        if (name.empty()) {
            throw ValidationError{
                service::invalid_field("default_query", name, "must have names for its values")};
        }
    }
    return query;
}

Headers client_headers(ClientOptions const& options, Environment const& environment) {
    require(service::check_headers(options.default_headers, "default_headers"));
    auto headers = service::standard_headers(options.sdk_version.empty() ? service::parity_version
                                                                         : options.sdk_version);
    Headers const from_environment = headers_of(environment, "TINKXX_DEFAULT_HEADERS");
    auto id = given_or(options.cloudflare_access_id, environment, "CLOUDFLARE_ACCESS_CLIENT_ID");
    if (!id.empty()) headers.set("CF-Access-Client-Id", std::move(id));
    auto secret =
        given_or(options.cloudflare_access_secret, environment, "CLOUDFLARE_ACCESS_CLIENT_SECRET");
    if (!secret.empty()) headers.set("CF-Access-Client-Secret", std::move(secret));
    for (auto const* lines : {&from_environment, &options.default_headers}) {
        for (auto const& [name, value] : *lines) headers.set(name, value);
    }
    require(service::check_headers(headers, "default_headers"));
    return headers;
}

// R-CONF-07, R-EXT-70.
void check_proxy(std::string const& proxy) {
    auto const refuse = [&proxy](std::string rule) {
        throw ValidationError{service::invalid_field("proxy", redact_url(proxy), std::move(rule))};
    };
    auto const parsed = boost::urls::parse_uri(proxy);
    if (!parsed) refuse("must be a URL such as http://host:3128");
    auto const scheme = lower(std::string{parsed->scheme()});
    if (scheme != "http" && scheme != "https") refuse("must begin with http:// or https://");
    if (!parsed->has_authority() || parsed->encoded_host().empty()) refuse("must name a host");
    if (parsed->has_port() && (parsed->port_number() == 0 || parsed->port().size() > 5)) {
        refuse("must have a port from 1 to 65535");
    }
    if (std::string path{parsed->encoded_path()};
        (!path.empty() && path != "/") || parsed->has_query() || parsed->has_fragment()) {
        refuse("must have nothing after its port");
    }
}

NetOptions net_options(ClientOptions const& options, Environment const& environment) {
    auto net = options.net;
    auto& proxy = net.proxy;
    if (!options.proxy.empty()) proxy.url = options.proxy;
    if (proxy.url.empty()) proxy.url = variable(environment, "TINKXX_PROXY");
    if (!options.proxy_headers.empty()) proxy.headers = options.proxy_headers;
    if (proxy.headers.empty()) proxy.headers = headers_of(environment, "TINKXX_PROXY_HEADERS");
    if (!options.no_proxy.empty()) proxy.no_proxy = options.no_proxy;
    if (proxy.no_proxy.empty()) proxy.no_proxy = variable(environment, "NO_PROXY");
    if (proxy.no_proxy.empty()) proxy.no_proxy = variable(environment, "no_proxy");
    if (!proxy.url.empty()) check_proxy(proxy.url);
    require(service::check_headers(proxy.headers, "proxy_headers"));
    return net;
}

void add_proxy_secrets(service::Scrubber& scrubber, ProxyOptions const& proxy) {
    scrubber.add_secrets_of(proxy.headers);
    auto const parsed = boost::urls::parse_uri(proxy.url);
    if (!parsed || !parsed->has_userinfo()) return;
    scrubber.add(std::string{parsed->encoded_password()});
    scrubber.add(parsed->password());
    scrubber.add(service::base64(parsed->user() + ':' + parsed->password()));
}

std::optional<std::string> project_of(ClientOptions const& options,
                                      Environment const& environment) {
    if (!options.project_id.empty()) {
        if (trim(options.project_id).empty()) {
            throw ValidationError{service::invalid_field(
                "project_id", options.project_id, "must not be blank (leave it empty for none)")};
        }
        return options.project_id;
    }
    auto const text = variable(environment, "TINKER_PROJECT_ID");
    if (trim(text).empty()) return std::nullopt;
    return text;
}

// On unless the variable says anything but yes (R-CONF-03).
bool telemetry_of(ClientOptions const& options, Environment const& environment) {
    if (options.telemetry) return *options.telemetry;
    auto const word = environment("TINKER_TELEMETRY");
    return !word || parse_bool(*word).value_or(false);
}

std::optional<std::chrono::milliseconds> milliseconds_of(std::string_view text) {
    std::int64_t count = 0;
    auto const [end, failed] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (failed != std::errc{} || end != text.data() + text.size() || count < 0) return std::nullopt;
    return std::chrono::milliseconds{count};
}

PollBackoff poll_backoff_of(ClientOptions const& options, Environment const& environment) {
    auto backoff = options.poll_backoff;
    std::string field = "poll_backoff";
    auto const text = lower(trim(variable(environment, "TINKXX_POLL_BACKOFF")));
    if (std::holds_alternative<NoPollBackoff>(backoff) && !text.empty() && text != "none") {
        field = "TINKXX_POLL_BACKOFF";
        auto const rule = "must be none, exponential, or exponential:<first>:<longest> in ms";
        std::string_view rest = text;
        constexpr std::string_view word = "exponential";
        if (!rest.starts_with(word))
            throw ValidationError{service::invalid_field(field, text, rule)};
        rest.remove_prefix(word.size());
        ExponentialPollBackoff read;
        if (!rest.empty()) {
            auto const second = rest.find(':', 1);
            auto const first_wait = rest.starts_with(':') && second != std::string_view::npos
                                        ? milliseconds_of(rest.substr(1, second - 1))
                                        : std::nullopt;
            auto const longest =
                first_wait ? milliseconds_of(rest.substr(second + 1)) : std::nullopt;
            if (!longest) throw ValidationError{service::invalid_field(field, text, rule)};
            read = {.initial = *first_wait, .max = *longest};
        }
        backoff = read;
    }
    if (auto const* waits = std::get_if<ExponentialPollBackoff>(&backoff)) {
        if (waits->initial.count() <= 0 || waits->max < waits->initial) {
            throw ValidationError{
                service::invalid_field(field,
                                       std::to_string(waits->initial.count()) + " ms to " +
                                           std::to_string(waits->max.count()) + " ms",
                                       "must grow from above zero to at least as much")};
        }
    }
    return backoff;
}

void check_positive(char const* field, std::optional<std::int64_t> limit) {
    if (!limit || *limit > 0) return;
    throw ValidationError{
        service::invalid_field(field, std::to_string(*limit), "must be above zero")};
}

void check_time(char const* field, std::chrono::milliseconds time, bool zero_allowed) {
    if (time.count() > 0 || (zero_allowed && time.count() == 0)) return;
    throw ValidationError{
        service::invalid_field(field, std::to_string(time.count()) + " ms",
                               zero_allowed ? "must not be negative" : "must be above zero")};
}

void check_limits(ClientOptions const& options) {
    check_positive("dispatch.count", options.dispatch.count);
    check_positive("dispatch.throttled", options.dispatch.throttled);
    check_positive("dispatch.bytes", options.dispatch.bytes);
    check_positive("download_bytes", options.download_bytes);
    check_positive("chunks.items", options.chunks.items);
    check_positive("chunks.bytes", options.chunks.bytes);
    check_positive("chunks.bytes_in_flight", options.chunks.bytes_in_flight);
    check_time("deadline", options.deadline, true);
    if (options.poll_error_limit) check_time("poll_error_limit", *options.poll_error_limit, true);
    auto const& intervals = options.intervals;
    check_time("intervals.heartbeat", intervals.heartbeat, false);
    check_time("intervals.heartbeat_warning", intervals.heartbeat_warning, true);
    check_time("intervals.heartbeat_max_silence", intervals.heartbeat_max_silence, true);
    check_time("intervals.dynamic_refresh_minimum", intervals.dynamic_refresh_minimum, false);
    check_time("intervals.telemetry_flush", intervals.telemetry_flush, false);
    check_time("intervals.telemetry_drain", intervals.telemetry_drain, true);
    if (intervals.heartbeat_max_failures < 0) {
        throw ValidationError{service::invalid_field(
            "intervals.heartbeat_max_failures", std::to_string(intervals.heartbeat_max_failures),
            "must not be negative (0 means any number)")};
    }
}

void resolve_session(ResolvedOptions& resolved, ClientOptions const& options,
                     Environment const& environment) {
    check_limits(options);
    resolved.credential_cmd =
        trim(given_or(options.credential_cmd, environment, "TINKER_CREDENTIAL_CMD"));
    resolved.credentials_file = options.credentials_file;
    resolved.sdk_version =
        options.sdk_version.empty() ? std::string{service::parity_version} : options.sdk_version;
    resolved.tags = options.tags.empty() ? words_of(variable(environment, "TINKER_TAGS"))
                                         : once_each(options.tags);
    resolved.user_metadata = options.user_metadata;
    resolved.project_id = project_of(options, environment);
    if (!options.display_name.empty()) resolved.display_name = options.display_name;
    resolved.feature_gates = options.feature_gates.empty()
                                 ? words_of(variable(environment, "TINKER_FEATURE_GATES"))
                                 : once_each(options.feature_gates);
    if (resolved.feature_gates.empty()) resolved.feature_gates = {"async_sampling"};
    resolved.telemetry = telemetry_of(options, environment);
    resolved.header_overrides = options.default_headers;
    resolved.poll_backoff = poll_backoff_of(options, environment);
    resolved.poll_error_limit = options.poll_error_limit;
    resolved.dispatch = options.dispatch;
    resolved.deadline = options.deadline;
    resolved.max_pending = options.max_pending;
    resolved.when_full = options.when_full;
    resolved.report_pending = options.report_pending;
    resolved.warn_of_stalls = options.warn_of_stalls;
    resolved.submit_encoding = options.submit_encoding;
    resolved.repeat_steps = options.repeat_steps;
    resolved.check_data = options.check_data;
    resolved.overrides = {.sample_bytes = options.dispatch.bytes,
                          .download_bytes = options.download_bytes,
                          .chunk_items = options.chunks.items,
                          .chunk_bytes = options.chunks.bytes,
                          .forward_backward_bytes = options.chunks.bytes_in_flight,
                          .completion_poll = options.completion_poll,
                          .join_sampling_session = options.join_sampling_session};
    auto const& intervals = options.intervals;
    resolved.intervals = {.heartbeat = intervals.heartbeat,
                          .heartbeat_warning = intervals.heartbeat_warning,
                          .heartbeat_max_failures = intervals.heartbeat_max_failures,
                          .heartbeat_max_silence = intervals.heartbeat_max_silence,
                          .dynamic_refresh_minimum = intervals.dynamic_refresh_minimum,
                          .telemetry_flush = intervals.telemetry_flush,
                          .telemetry_drain = intervals.telemetry_drain};
}

}  // namespace

Environment process_environment() {
    return [](char const* name) -> std::optional<std::string> {
        auto const* value = std::getenv(name);
        if (value == nullptr) return std::nullopt;
        return std::string{value};
    };
}

std::optional<bool> parse_bool(std::string_view word) {
    auto const text = lower(trim(word));
    for (auto const* yes : {"1", "true", "yes", "on"}) {
        if (text == yes) return true;
    }
    for (auto const* no : {"0", "false", "no", "off"}) {
        if (text == no) return false;
    }
    return std::nullopt;
}

ResolvedOptions resolve(ClientOptions const& options, Environment const& environment) {
    require(service::check_timeouts(options.timeouts));
    require(service::check_retries(options.max_retries));

    auto base_url = options.base_url;
    if (base_url.empty()) base_url = variable(environment, "TINKER_BASE_URL");
    if (base_url.empty()) base_url = default_base_url;
    auto endpoint = service::Endpoint::parse(base_url);
    if (!endpoint) endpoint.error().raise();

    ResolvedOptions resolved{.http = {.endpoint = std::move(*endpoint)}};
    resolved.api_key =
        options.api_key.empty() ? variable(environment, "TINKER_API_KEY") : options.api_key;
    if (!service::is_field_value(resolved.api_key)) {
        throw ValidationError{service::invalid_field("api_key", redact_key(resolved.api_key),
                                                     "must have no control characters")};
    }
    resolved.net = net_options(options, environment);

    auto& http = resolved.http;
    http.timeouts = options.timeouts;
    http.max_retries = options.max_retries;
    http.headers = client_headers(options, environment);
    http.query = query_of(options, environment);
    http.metadata = options.metadata;
    for (auto const& observer : options.observers) {
        if (observer) http.observers.push_back(observer);
    }
    auto level = options.log_level;
    if (!level) level = parse_log_level(lower(trim(variable(environment, "TINKER_LOG"))));
    http.log = options.log;
    http.own_log = static_cast<bool>(options.log);
    if (level) {
        // The runtime's sink keeps to the runtime's level; a level of its own needs a sink.
        if (!http.log) http.log = stderr_log();
        http.log_level = *level;
    }
    http.dump = options.dump_headers.value_or(
        parse_bool(variable(environment, "TINKXX_DUMP_HEADERS")).value_or(false));

    http.scrubber.add(resolved.api_key);
    http.scrubber.add_secrets_of(http.headers);
    add_proxy_secrets(http.scrubber, resolved.net.proxy);

    if (options.otel_propagate.value_or(
            parse_bool(variable(environment, "TINKXX_OTEL_PROPAGATE")).value_or(false))) {
        resolved.trace_propagator = options.trace_propagator;
    }
    resolve_session(resolved, options, environment);
    return resolved;
}

service::CredentialConfig credential_config(ResolvedOptions const& resolved) {
    service::CredentialConfig config{.api_key = resolved.api_key,
                                     .command = resolved.credential_cmd};
    if (!config.api_key.empty()) return config;
    auto const stored = CredentialStore{resolved.credentials_file}.read();
    if (!stored) {
        if (config.command.empty()) stored.error().raise();
        return config;
    }
    if (auto const* key = stored->default_key()) config.stored = key->key;
    return config;
}

service::SessionConfig session_config(ResolvedOptions const& resolved) {
    service::SessionConfig config{.http = resolved.http};
    config.credentials = credential_config(resolved);
    if (auto const chosen = service::choose_credential(config.credentials); !chosen) {
        chosen.error().raise();
    }
    config.http.scrubber.add(config.credentials.stored);
    config.sdk_version = resolved.sdk_version;
    config.tags = resolved.tags;
    config.user_metadata = resolved.user_metadata;
    config.project_id = resolved.project_id;
    config.display_name = resolved.display_name;
    config.header_overrides = resolved.header_overrides;
    config.overrides = resolved.overrides;
    config.intervals = resolved.intervals;
    config.telemetry = resolved.telemetry;
    return config;
}

}  // namespace tinkxx::client

namespace tinkxx {

namespace {

service::CredentialConfig sources(ClientOptions const& options) {
    auto const all = client::with_defaults(options);
    return client::credential_config(client::resolve(all, client::process_environment()));
}

}  // namespace

bool has_credentials() { return has_credentials(ClientOptions{}); }

bool has_credentials(ClientOptions const& options) {
    return service::choose_credential(sources(options)).has_value();
}

std::optional<std::string> static_token() { return static_token(ClientOptions{}); }

std::optional<std::string> static_token(ClientOptions const& options) {
    auto config = sources(options);
    config.command.clear();
    auto chosen = service::choose_credential(config);
    if (!chosen) return std::nullopt;
    return std::move(chosen->value);
}

}  // namespace tinkxx
