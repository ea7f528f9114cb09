#include "local/core/server_info.hpp"

#include "local/api/json.hpp"
#include "local/core/routes.hpp"
#include "wire/session/service_messages.hpp"

#include <tinkxx/version.hpp>

namespace tinkxx::local {

using wire::JsonOut;

namespace {

constexpr std::size_t most_telemetry = std::size_t{16} << 20U;

}  // namespace

MaybeRefused ServerInfo::client_config(Ask& ask) {
    // Everything else is as the official SDK takes it without being told.
    send_json(*ask.answer, json_object([](JsonOut& json) {
        json.member("pjwt_auth_enabled", false);
        json.member("parallel_fwdbwd_chunks", true);
        json.member("proto_compress_fwdbwd", false);
        json.member("sample_use_retrieve_futures", true);
        json.member("sample_join_sampling_session", true);
        json.member("custom_loss_server_side", false);
        // Read by clients before 0.25, which otherwise send JSON.
        json.member("proto_write_fwdbwd", true);
        json.member("fwd_via_fwdbwd", true);
    }));
    return {};
}

MaybeRefused ServerInfo::dynamic_config(Ask& ask) {
    send_json(*ask.answer, json_object([](JsonOut& json) {
        json.member("refresh_interval_sec", 300);
        json.member("sample_cancel_enabled", true);
        json.member("sample_cancel_max_batch_size", 64);
    }));
    return {};
}

MaybeRefused ServerInfo::healthz(Ask& ask) {
    send_json(*ask.answer, json_object([](JsonOut& json) { json.member("status", "ok"); }));
    return {};
}

MaybeRefused ServerInfo::capabilities(Ask& ask) {
    send_json(*ask.answer, json_object([this](JsonOut& json) {
        json.key("supported_models");
        json.open_array();
        for (auto const& [name, base] : uses_.bases.all()) {
            json.open_object();
            json.member("model_name", name);
            json.member("max_context_length", base.config.max_positions);
            json.member("trainable", base.failure.empty());
            json.member("sampleable", base.failure.empty());
            json.close_object();
        }
        json.close_array();
    }));
    return {};
}

MaybeRefused ServerInfo::api_key_info(Ask& ask) {
    send_json(*ask.answer, json_object([](JsonOut& json) {
        json.member("key_id", 0);
        json.member("name", "local");
        json.member("note", "the key of a local server");
        json.key("details");
        json.open_object();
        json.key("org_details");
        json.open_object();
        json.member("name", "local");
        json.close_object();
        json.key("user_details");
        json.open_object();
        json.member("email", "local@localhost");
        json.close_object();
        json.close_object();
    }));
    return {};
}

MaybeRefused ServerInfo::telemetry(Ask& ask) {
    return uses_.services.bodies.read(
        ask, most_telemetry, [](std::string body) { return wire::server::decode_telemetry(body); },
        [this](Ask& asked, wire::server::Telemetry const& batch) -> MaybeRefused {
            uses_.services.counters.add("tinkxx_telemetry_events_total", {}, batch.events);
            uses_.sessions.touch(batch.session_id);
            send_json(*asked.answer,
                      json_object([](JsonOut& json) { json.member("status", "accepted"); }));
            return {};
        });
}

MaybeRefused ServerInfo::metrics(Ask& ask) {
    auto text = uses_.services.counters.text();
    uses_.gauges([&text](std::string_view name, std::size_t value) {
        text += "# TYPE " + std::string{name} + " gauge\n" + std::string{name} + " " +
                std::to_string(value) + "\n";
    });
    send_bytes(*ask.answer, 200, "text/plain; version=0.0.4", std::move(text));
    return {};
}

MaybeRefused ServerInfo::describe(Ask& ask) {
    send_json(*ask.answer, json_object([this](JsonOut& json) {
        json.member("name", "tinkxx");
        json.member("version", TINKXX_VERSION);
        json.member("api", "/api/v1");
        json.key("models");
        json.open_array();
        for (auto const& [name, base] : uses_.bases.all()) json.value(name);
        json.close_array();
    }));
    return {};
}

MaybeRefused ServerInfo::not_served(Ask& ask) {
    auto const path = std::string_view{ask.request.target};
    auto const match = match_route(ask.request.method, path.substr(0, path.find('?')));
    return Refused{404, std::string{ask.operation} +
                            " is not served by a local server: " + std::string{match.route->note}};
}

}  // namespace tinkxx::local
