#include "client/options/resolved_options.hpp"

#include <tinkxx/credentials.hpp>
#include <tinkxx/redaction.hpp>

#include "service/auth/credential_choice.hpp"
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

void fill(std::string& option, Environment const& environment, char const* name) {
    if (option.empty()) option = variable(environment, name);
}

// R-CONF-04.
void fill(std::optional<bool>& option, Environment const& environment, char const* name) {
    if (!option) option = parse_bool(variable(environment, name)).value_or(false);
}

// Trimmed, each once, none of them blank.
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

// What is given, else the parts between commas of the variable (R-CONF-03, C-56).
void fill(std::vector<std::string>& words, Environment const& environment, char const* name) {
    if (words.empty()) {
        auto const all = variable(environment, name);
        for (std::string_view rest = all; !rest.empty();) {
            auto const comma = std::min(rest.find(','), rest.size());
            words.emplace_back(rest.substr(0, comma));
            rest.remove_prefix(std::min(comma + 1, rest.size()));
        }
    }
    words = once_each(words);
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

void fill_query(ClientOptions& options, Environment const& environment) {
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
    options.default_query = std::move(query);
}

Headers client_headers(ClientOptions& options, Environment const& environment) {
    require(service::check_headers(options.default_headers, "default_headers"));
    auto headers = service::standard_headers(options.sdk_version);
    Headers const from_environment = headers_of(environment, "TINKXX_DEFAULT_HEADERS");
    auto& id = options.cloudflare_access_id;
    fill(id, environment, "CLOUDFLARE_ACCESS_CLIENT_ID");
    if (!id.empty()) headers.set("CF-Access-Client-Id", id);
    auto& secret = options.cloudflare_access_secret;
    fill(secret, environment, "CLOUDFLARE_ACCESS_CLIENT_SECRET");
    if (!secret.empty()) headers.set("CF-Access-Client-Secret", secret);
    for (auto const* lines : {&from_environment, &std::as_const(options.default_headers)}) {
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

// The options of the proxy that stand apart go before those among the network's.
void fill_proxy(ClientOptions& options, Environment const& environment) {
    auto& proxy = options.net.proxy;
    if (!options.proxy.empty()) proxy.url = std::exchange(options.proxy, {});
    fill(proxy.url, environment, "TINKXX_PROXY");
    if (!options.proxy_headers.empty()) proxy.headers = std::exchange(options.proxy_headers, {});
    if (proxy.headers.empty()) proxy.headers = headers_of(environment, "TINKXX_PROXY_HEADERS");
    if (!options.no_proxy.empty()) proxy.no_proxy = std::exchange(options.no_proxy, {});
    fill(proxy.no_proxy, environment, "NO_PROXY");
    fill(proxy.no_proxy, environment, "no_proxy");
    if (!proxy.url.empty()) check_proxy(proxy.url);
    require(service::check_headers(proxy.headers, "proxy_headers"));
}

void add_proxy_secrets(service::Scrubber& scrubber, ProxyOptions const& proxy) {
    scrubber.add_secrets_of(proxy.headers);
    auto const parsed = boost::urls::parse_uri(proxy.url);
    if (!parsed || !parsed->has_userinfo()) return;
    scrubber.add(std::string{parsed->encoded_password()});
    scrubber.add(parsed->password());
    scrubber.add(service::base64(parsed->user() + ':' + parsed->password()));
}

void fill_project(ClientOptions& options, Environment const& environment) {
    if (!options.project_id.empty()) {
        if (!trim(options.project_id).empty()) return;
        throw ValidationError{service::invalid_field(
            "project_id", options.project_id, "must not be blank (leave it empty for none)")};
    }
    fill(options.project_id, environment, "TINKER_PROJECT_ID");
    if (trim(options.project_id).empty()) options.project_id.clear();
}

// On unless the variable says anything but yes (R-CONF-03).
void fill_telemetry(ClientOptions& options, Environment const& environment) {
    if (options.telemetry) return;
    auto const word = environment("TINKER_TELEMETRY");
    options.telemetry = !word || parse_bool(*word).value_or(false);
}

std::optional<std::chrono::milliseconds> milliseconds_of(std::string_view text) {
    std::int64_t count = 0;
    auto const [end, failed] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (failed != std::errc{} || end != text.data() + text.size() || count < 0) return std::nullopt;
    return std::chrono::milliseconds{count};
}

void fill_poll_backoff(ClientOptions& options, Environment const& environment) {
    auto& backoff = options.poll_backoff;
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

void fill_session(ClientOptions& options, Environment const& environment) {
    fill(options.credential_cmd, environment, "TINKER_CREDENTIAL_CMD");
    options.credential_cmd = trim(options.credential_cmd);
    fill(options.tags, environment, "TINKER_TAGS");
    fill_project(options, environment);
    fill_telemetry(options, environment);
    fill_poll_backoff(options, environment);
}

// Whether `log` is the caller's.
bool fill_log(ClientOptions& options, Environment const& environment) {
    bool const own = static_cast<bool>(options.log);
    if (!options.log_level) {
        options.log_level = parse_log_level(lower(trim(variable(environment, "TINKER_LOG"))));
    }
    // The runtime's sink keeps to the runtime's level; a level of its own needs a sink.
    if (options.log_level && !own) options.log = stderr_log();
    return own;
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

service::ClientConfig resolve(ClientOptions options, Environment const& environment) {
    options.runtime.reset();
    options.transport.reset();
    require(service::check_timeouts(options.timeouts));
    require(service::check_retries(options.max_retries));

    fill(options.base_url, environment, "TINKER_BASE_URL");
    if (options.base_url.empty()) options.base_url = default_base_url;
    auto endpoint = service::Endpoint::parse(options.base_url);
    if (!endpoint) endpoint.error().raise();
    fill(options.api_key, environment, "TINKER_API_KEY");
    if (!service::is_field_value(options.api_key)) {
        throw ValidationError{service::invalid_field("api_key", redact_key(options.api_key),
                                                     "must have no control characters")};
    }
    fill_proxy(options, environment);
    if (options.sdk_version.empty()) options.sdk_version = service::parity_version;
    auto headers = client_headers(options, environment);
    fill_query(options, environment);
    std::erase(options.observers, nullptr);
    bool const own_log = fill_log(options, environment);
    fill(options.dump_headers, environment, "TINKXX_DUMP_HEADERS");
    fill(options.otel_propagate, environment, "TINKXX_OTEL_PROPAGATE");
    if (!*options.otel_propagate) options.trace_propagator = {};
    check_limits(options);
    fill_session(options, environment);

    service::ClientConfig config{std::move(options), std::move(*endpoint)};
    config.headers = std::move(headers);
    config.own_log = own_log;
    config.credentials = {.api_key = std::exchange(config.api_key, {}),
                          .command = std::exchange(config.credential_cmd, {})};
    config.scrubber.add(config.credentials.api_key);
    config.scrubber.add_secrets_of(config.headers);
    add_proxy_secrets(config.scrubber, config.net.proxy);
    return config;
}

service::ClientConfig with_stored_key(service::ClientConfig config) {
    auto& credentials = config.credentials;
    if (!credentials.api_key.empty()) return config;
    auto const stored = CredentialStore{config.credentials_file}.read();
    if (!stored) {
        if (credentials.command.empty()) stored.error().raise();
        return config;
    }
    if (auto const* key = stored->default_key()) credentials.stored = key->key;
    config.scrubber.add(credentials.stored);
    return config;
}

service::ClientConfig with_credential(service::ClientConfig config) {
    config = with_stored_key(std::move(config));
    if (auto const chosen = service::choose_credential(config.credentials); !chosen) {
        chosen.error().raise();
    }
    return config;
}

}  // namespace tinkxx::client

namespace tinkxx {

namespace {

service::CredentialConfig sources(ClientOptions const& options) {
    auto config = client::resolve(client::with_defaults(options), client::process_environment());
    return client::with_stored_key(std::move(config)).credentials;
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
