#include "local/core/routes.hpp"

#include <algorithm>
#include <array>

namespace tinkxx::local {

namespace {

using enum Service;

constexpr auto table = std::to_array<Route>({
    {"POST", "/api/v1/client/config", &Core::client_config, served, "how to talk to this server"},
    {"POST", "/api/v1/client/dynamic_config", &Core::dynamic_config, served,
     "what may change meanwhile"},
    {"POST", "/api/v1/auth/token", &Core::not_served, refused,
     "keys are used as they are; there are no tokens"},
    {"GET", "/api/v1/healthz", &Core::healthz, served, "whether it runs", true},
    {"GET", "/api/v1/get_server_capabilities", &Core::capabilities, served, "its base models"},
    {"POST", "/api/v1/create_session", &Core::create_session, served, "begins a session"},
    {"POST", "/api/v1/session_heartbeat", &Core::session_heartbeat, served,
     "keeps a session alive"},
    {"POST", "/api/v1/create_sampling_session", &Core::create_sampling_session, served,
     "chooses weights to draw from"},
    {"POST", "/api/v1/asample", &Core::asample, served, "draws samples"},
    {"POST", "/api/v1/retrieve_future", &Core::retrieve_future, served, "waits for a result"},
    {"POST", "/api/v1/create_model", &Core::create_model, served, "makes an adapter to train"},
    {"POST", "/api/v1/unload_model", &Core::unload_model, served, "frees its memory"},
    {"POST", "/api/v1/get_info", &Core::get_info, served, "what a model is"},
    {"POST", "/api/v1/forward_backward", &Core::forward_backward, served,
     "losses and gradients; protobuf, zstd or JSON"},
    {"POST", "/api/v1/forward", &Core::forward, served, "losses only; JSON"},
    {"POST", "/api/v1/optim_step", &Core::optim_step, served, "one step of AdamW"},
    {"POST", "/api/v1/save_weights", &Core::save_weights, served, "a checkpoint to train on from"},
    {"POST", "/api/v1/load_weights", &Core::load_weights, served, "into a model, or a new one"},
    {"POST", "/api/v1/save_weights_for_sampler", &Core::save_weights_for_sampler, served,
     "weights to draw from, with or without a name"},
    {"POST", "/api/v1/weights_info", &Core::weights_info, served, "what a checkpoint is"},
    {"GET", "/api/v1/samplers/{sampler}", &Core::get_sampler, served, "what a sampler draws from"},
    {"GET", "/api/v1/training_runs", &Core::list_runs, served, "training runs, newest first"},
    {"GET", "/api/v1/training_runs/{run}", &Core::get_run, served, "one of them"},
    {"GET", "/api/v1/training_runs/{run}/checkpoints", &Core::list_run_checkpoints, served,
     "its checkpoints"},
    {"DELETE", "/api/v1/training_runs/{run}/checkpoints/{ckpt}", &Core::delete_checkpoint, served,
     "removes one"},
    {"GET", "/api/v1/training_runs/{run}/checkpoints/{ckpt}/archive", &Core::archive, served,
     "leads to its archive"},
    {"POST", "/api/v1/training_runs/{run}/checkpoints/{ckpt}/publish", &Core::publish, served,
     "marks it as public"},
    {"DELETE", "/api/v1/training_runs/{run}/checkpoints/{ckpt}/publish", &Core::unpublish, served,
     "and takes that back"},
    {"PUT", "/api/v1/training_runs/{run}/checkpoints/{ckpt}/ttl", &Core::set_ttl, served,
     "how long it is kept"},
    {"GET", "/api/v1/checkpoints", &Core::list_checkpoints, served,
     "all checkpoints, newest first"},
    {"GET", "/api/v1/sessions", &Core::list_sessions, served, "sessions, newest first"},
    {"GET", "/api/v1/sessions/{session}", &Core::get_session, served, "one of them"},
    {"PUT", "/api/v1/sessions/{session}/project", &Core::set_project, served,
     "puts it into a project"},
    {"GET", "/api/v1/sessions/{session}/trace_export", &Core::trace_export, refused,
     "no traces are recorded"},
    {"GET", "/api/v1/audit", &Core::audit, served, "what happened to checkpoints on a day"},
    {"GET", "/api/v1/billing/usage/events", &Core::usage_events, served,
     "tokens by the hour; nothing costs anything"},
    {"POST", "/api/v1/sessions/{session}/finish", &Core::finish_session, served,
     "ends it and unloads its models"},
    {"POST", "/api/v1/join_sampling_session", &Core::join_sampling_session, served,
     "numbers the copies of a client"},
    {"POST", "/api/v1/retrieve_futures", &Core::retrieve_futures, served,
     "which samples of a sampler are done"},
    {"POST", "/api/v1/cancel_future", &Core::cancel_future, served, "gives a sample up"},
    {"POST", "/api/v1/create_custom_loss", &Core::not_served, refused,
     "losses of your own run in the client"},
    {"POST", "/api/v1/save_weights_external", &Core::save_weights_external, served,
     "an adapter for PEFT; not encrypted"},
    {"GET", "/api/v1/training_runs/{run}/checkpoints/{ckpt}/external_weights_urls",
     &Core::external_urls, served, "links to its files"},
    {"POST", "/api/v1/copy_weights", &Core::copy_weights, served, "a copy in a run of its own"},
    {"POST", "/api/v1/sessions/search", &Core::search_sessions, served,
     "sessions by name, metadata or status"},
    {"GET", "/api/v1/billing/usage/checkpoints/current", &Core::storage_usage, served,
     "what checkpoints take"},
    {"GET", "/api/v1/auth/apikey/me", &Core::api_key_info, served, "whose key it is: yours"},
    {"DELETE", "/api/v1/auth/apikey/me", &Core::not_served, refused,
     "the key is set where the server is started"},
    {"POST", "/api/v1/telemetry", &Core::telemetry, served, "accepted and counted"},
    // Beyond the official SDK.
    {"POST", "/api/v1/stream_sample", &Core::stream_sample, served,
     "one request's samples as server-sent events"},
    {"GET", "/api/v1/training_runs/{run}/checkpoints/{ckpt}/download", &Core::download, served,
     "the archive, a tar file, by a signed link", true},
    {"GET", "/api/v1/training_runs/{run}/checkpoints/{ckpt}/files/{file}", &Core::download_file,
     served, "one file, by a signed link", true},
    {"GET", "/metrics", &Core::metrics, served, "counters and gauges for Prometheus"},
    {"GET", "/", &Core::describe, served, "what this is", true},
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
