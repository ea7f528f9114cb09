#include "local/core/routes.hpp"

#include "local/core/parts.hpp"

#include <algorithm>
#include <array>

namespace tinkxx::local {

namespace {

using enum Service;

/// Calls an endpoint of a part.
template <auto Part, auto Endpoint>
MaybeRefused call(Parts& parts, Ask& ask) {
    return ((parts.*Part).*Endpoint)(ask);
}

constexpr auto table = std::to_array<Route>({
    {"POST", "/api/v1/client/config", call<&Parts::info, &ServerInfo::client_config>, served,
     "how to talk to this server"},
    {"POST", "/api/v1/client/dynamic_config", call<&Parts::info, &ServerInfo::dynamic_config>,
     served, "what may change meanwhile"},
    {"POST", "/api/v1/auth/token", call<&Parts::info, &ServerInfo::not_served>, not_served,
     "keys are used as they are; there are no tokens"},
    {"GET", "/api/v1/healthz", call<&Parts::info, &ServerInfo::healthz>, served, "whether it runs",
     true},
    {"GET", "/api/v1/get_server_capabilities", call<&Parts::info, &ServerInfo::capabilities>,
     served, "its base models"},
    {"POST", "/api/v1/create_session", call<&Parts::sessions, &Sessions::create_session>, served,
     "begins a session"},
    {"POST", "/api/v1/session_heartbeat", call<&Parts::sessions, &Sessions::session_heartbeat>,
     served, "keeps a session alive"},
    {"POST", "/api/v1/create_sampling_session",
     call<&Parts::samplers, &Samplers::create_sampling_session>, served,
     "chooses weights to draw from"},
    {"POST", "/api/v1/asample", call<&Parts::sampling, &Sampling::asample>, served,
     "draws samples"},
    {"POST", "/api/v1/retrieve_future", call<&Parts::retrieval, &Retrieval::retrieve_future>,
     served, "waits for a result"},
    {"POST", "/api/v1/create_model", call<&Parts::models, &Models::create_model>, served,
     "makes an adapter to train"},
    {"POST", "/api/v1/unload_model", call<&Parts::models, &Models::unload_model>, served,
     "frees its memory"},
    {"POST", "/api/v1/get_info", call<&Parts::models, &Models::get_info>, served,
     "what a model is"},
    {"POST", "/api/v1/forward_backward", call<&Parts::passes, &Passes::forward_backward>, served,
     "losses and gradients; protobuf, zstd or JSON"},
    {"POST", "/api/v1/forward", call<&Parts::passes, &Passes::forward>, served,
     "losses only; JSON"},
    {"POST", "/api/v1/optim_step", call<&Parts::passes, &Passes::optim_step>, served,
     "one step of AdamW"},
    {"POST", "/api/v1/save_weights", call<&Parts::saves, &Saves::save_weights>, served,
     "a checkpoint to train on from"},
    {"POST", "/api/v1/load_weights", call<&Parts::loads, &Loads::load_weights>, served,
     "into a model, or a new one"},
    {"POST", "/api/v1/save_weights_for_sampler",
     call<&Parts::saves, &Saves::save_weights_for_sampler>, served,
     "weights to draw from, with or without a name"},
    {"POST", "/api/v1/weights_info", call<&Parts::checkpoints, &Checkpoints::weights_info>, served,
     "what a checkpoint is"},
    {"GET", "/api/v1/samplers/{sampler}", call<&Parts::samplers, &Samplers::get_sampler>, served,
     "what a sampler draws from"},
    {"GET", "/api/v1/training_runs", call<&Parts::runs, &Runs::list_runs>, served,
     "training runs, newest first"},
    {"GET", "/api/v1/training_runs/{run}", call<&Parts::runs, &Runs::get_run>, served,
     "one of them"},
    {"GET", "/api/v1/training_runs/{run}/checkpoints",
     call<&Parts::checkpoints, &Checkpoints::list_run_checkpoints>, served, "its checkpoints"},
    {"DELETE", "/api/v1/training_runs/{run}/checkpoints/{ckpt}",
     call<&Parts::checkpoints, &Checkpoints::delete_checkpoint>, served, "removes one"},
    {"GET", "/api/v1/training_runs/{run}/checkpoints/{ckpt}/archive",
     call<&Parts::downloads, &Downloads::archive>, served, "leads to its archive"},
    {"POST", "/api/v1/training_runs/{run}/checkpoints/{ckpt}/publish",
     call<&Parts::checkpoints, &Checkpoints::publish>, served, "marks it as public"},
    {"DELETE", "/api/v1/training_runs/{run}/checkpoints/{ckpt}/publish",
     call<&Parts::checkpoints, &Checkpoints::unpublish>, served, "and takes that back"},
    {"PUT", "/api/v1/training_runs/{run}/checkpoints/{ckpt}/ttl",
     call<&Parts::checkpoints, &Checkpoints::set_ttl>, served, "how long it is kept"},
    {"GET", "/api/v1/checkpoints", call<&Parts::checkpoints, &Checkpoints::list_checkpoints>,
     served, "all checkpoints, newest first"},
    {"GET", "/api/v1/sessions", call<&Parts::sessions, &Sessions::list_sessions>, served,
     "sessions, newest first"},
    {"GET", "/api/v1/sessions/{session}", call<&Parts::sessions, &Sessions::get_session>, served,
     "one of them"},
    {"PUT", "/api/v1/sessions/{session}/project", call<&Parts::sessions, &Sessions::set_project>,
     served, "puts it into a project"},
    {"GET", "/api/v1/sessions/{session}/trace_export",
     call<&Parts::sessions, &Sessions::trace_export>, not_served, "no traces are recorded"},
    {"GET", "/api/v1/audit", call<&Parts::usage, &Usage::audit>, served,
     "what happened to checkpoints on a day"},
    {"GET", "/api/v1/billing/usage/events", call<&Parts::usage, &Usage::usage_events>, served,
     "tokens by the hour; nothing costs anything"},
    {"POST", "/api/v1/sessions/{session}/finish", call<&Parts::sessions, &Sessions::finish_session>,
     served, "ends it and unloads its models"},
    {"POST", "/api/v1/join_sampling_session",
     call<&Parts::samplers, &Samplers::join_sampling_session>, served,
     "numbers the copies of a client"},
    {"POST", "/api/v1/retrieve_futures", call<&Parts::retrieval, &Retrieval::retrieve_futures>,
     served, "which samples of a sampler are done"},
    {"POST", "/api/v1/cancel_future", call<&Parts::sampling, &Sampling::cancel_future>, served,
     "gives a sample up"},
    {"POST", "/api/v1/create_custom_loss", call<&Parts::info, &ServerInfo::not_served>, not_served,
     "losses of your own run in the client"},
    {"POST", "/api/v1/save_weights_external", call<&Parts::saves, &Saves::save_weights_external>,
     served, "an adapter for PEFT; not encrypted"},
    {"GET", "/api/v1/training_runs/{run}/checkpoints/{ckpt}/external_weights_urls",
     call<&Parts::downloads, &Downloads::external_urls>, served, "links to its files"},
    {"POST", "/api/v1/copy_weights", call<&Parts::copies, &Copies::copy_weights>, served,
     "a copy in a run of its own"},
    {"POST", "/api/v1/sessions/search", call<&Parts::sessions, &Sessions::search_sessions>, served,
     "sessions by name, metadata or status"},
    {"GET", "/api/v1/billing/usage/checkpoints/current",
     call<&Parts::checkpoints, &Checkpoints::storage_usage>, served, "what checkpoints take"},
    {"GET", "/api/v1/auth/apikey/me", call<&Parts::info, &ServerInfo::api_key_info>, served,
     "whose key it is: yours"},
    {"DELETE", "/api/v1/auth/apikey/me", call<&Parts::info, &ServerInfo::not_served>, not_served,
     "the key is set where the server is started"},
    {"POST", "/api/v1/telemetry", call<&Parts::info, &ServerInfo::telemetry>, served,
     "accepted and counted"},
    // Beyond the official SDK.
    {"POST", "/api/v1/stream_sample", call<&Parts::sampling, &Sampling::stream_sample>, served,
     "one request's samples as server-sent events"},
    {"GET", "/api/v1/training_runs/{run}/checkpoints/{ckpt}/download",
     call<&Parts::downloads, &Downloads::download>, served,
     "the archive, a tar file, by a signed link", true},
    {"GET", "/api/v1/training_runs/{run}/checkpoints/{ckpt}/files/{file}",
     call<&Parts::downloads, &Downloads::download_file>, served, "one file, by a signed link",
     true},
    {"GET", "/metrics", call<&Parts::info, &ServerInfo::metrics>, served,
     "counters and gauges for Prometheus"},
    {"GET", "/", call<&Parts::info, &ServerInfo::describe>, served, "what this is", true},
});

std::vector<std::string_view> parts_of(std::string_view path) {
    std::vector<std::string_view> parts;
    while (path.starts_with('/')) {
        path.remove_prefix(1);
        auto const end = path.find('/');
        parts.push_back(path.substr(0, end));
        path = end == std::string_view::npos ? std::string_view{} : path.substr(end);
    }
    // A slash at the end means nothing.
    if (parts.size() > 1 && parts.back().empty()) parts.pop_back();
    return parts;
}

std::optional<std::vector<std::string>> fit(std::string_view pattern,
                                            std::vector<std::string_view> const& parts) {
    auto const wanted = parts_of(pattern);
    std::vector<std::string> names;
    std::size_t at = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (at >= parts.size()) return std::nullopt;
        if (wanted[i] == "{ckpt}") {
            auto name = percent_decode(parts[at++]);
            // As many parts as the rest of the pattern leaves, of which it may have one or two.
            auto const rest = wanted.size() - i - 1;
            if (parts.size() - at > rest) name += "/" + percent_decode(parts[at++]);
            names.push_back(std::move(name));
        } else if (wanted[i].starts_with('{')) {
            if (parts[at].empty()) return std::nullopt;
            names.push_back(percent_decode(parts[at++]));
        } else if (wanted[i] != parts[at++]) {
            return std::nullopt;
        }
    }
    if (at != parts.size()) return std::nullopt;
    return names;
}

int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

std::span<Route const> routes() noexcept { return table; }

Match match_route(std::string_view method, std::string_view path) {
    Match match;
    auto const parts = parts_of(path);
    for (auto const& route : table) {
        auto names = fit(route.path, parts);
        if (!names) continue;
        if (route.method != method) {
            match.other_method = true;
            continue;
        }
        match.route = &route;
        match.names = *std::move(names);
        return match;
    }
    return match;
}

std::string percent_decode(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 &&
            hex(text[i + 2]) >= 0) {
            out += static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
            i += 2;
        } else {
            out += text[i];
        }
    }
    return out;
}

std::map<std::string, std::string, std::less<>> parse_query(std::string_view query) {
    std::map<std::string, std::string, std::less<>> out;
    while (!query.empty()) {
        auto const end = query.find('&');
        auto const pair = query.substr(0, end);
        query = end == std::string_view::npos ? std::string_view{} : query.substr(end + 1);
        auto const equals = pair.find('=');
        auto const decoded = [](std::string_view text) {
            std::string plain{text};
            std::ranges::replace(plain, '+', ' ');
            return percent_decode(plain);
        };
        auto const value =
            equals == std::string_view::npos ? std::string_view{} : pair.substr(equals + 1);
        if (!pair.empty()) out.insert_or_assign(decoded(pair.substr(0, equals)), decoded(value));
    }
    return out;
}

}  // namespace tinkxx::local
