#include "local/api/json.hpp"
#include "local/core/bodies.hpp"
#include "local/core/routes.hpp"
#include "wire/service_messages.hpp"

#include <tinkxx/version.hpp>

namespace tinkxx::local {

using wire::JsonOut;

namespace {

constexpr std::size_t most_telemetry = std::size_t{16} << 20U;

}  // namespace

void Core::client_config(Ask& ask) {
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
}

void Core::dynamic_config(Ask& ask) {
    send_json(*ask.answer, json_object([](JsonOut& json) {
        json.member("refresh_interval_sec", 300);
        json.member("sample_cancel_enabled", true);
        json.member("sample_cancel_max_batch_size", 64);
    }));
}

void Core::healthz(Ask& ask) {
    send_json(*ask.answer, json_object([](JsonOut& json) { json.member("status", "ok"); }));
}

void Core::capabilities(Ask& ask) {
    send_json(*ask.answer, json_object([this](JsonOut& json) {
        json.key("supported_models");
        json.open_array();
        for (auto const& [name, base] : bases_) {
            json.open_object();
            json.member("model_name", name);
            json.member("max_context_length", base.config.max_positions);
            json.member("trainable", base.failure.empty());
            json.member("sampleable", base.failure.empty());
            json.close_object();
        }
        json.close_array();
    }));
}

void Core::api_key_info(Ask& ask) {
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
}

void Core::telemetry(Ask& ask) {
    with_body(
        ask, most_telemetry, [](std::string body) { return wire::server::decode_telemetry(body); },
        [this](Ask& asked, wire::server::Telemetry const& batch) {
            counters_.add("tinkxx_telemetry_events_total", {}, batch.events);
            touch_session(batch.session_id);
            send_json(*asked.answer,
                      json_object([](JsonOut& json) { json.member("status", "accepted"); }));
        });
}

void Core::metrics(Ask& ask) {
    auto text = counters_.text();
    auto const gauge = [&text](std::string const& name, std::size_t value) {
        text += "# TYPE " + name + " gauge\n" + name + " " + std::to_string(value) + "\n";
    };
    gauge("tinkxx_sessions_active", active_sessions_);
    gauge("tinkxx_models_loaded", models_.size());
    gauge("tinkxx_requests_pending", results_->pending_count());
    gauge("tinkxx_samples_pending", results_->pending_samples());
    gauge("tinkxx_training_bytes_pending", pending_bytes_);
    gauge("tinkxx_sample_bytes_pending", sample_bytes_);
    gauge("tinkxx_body_bytes_reading", reading_bytes_[0] + reading_bytes_[1]);
    gauge("tinkxx_polls_waiting", results_->waiting());
    gauge("tinkxx_results_kept", results_->kept());
    gauge("tinkxx_result_bytes", results_->memory_bytes());
    gauge("tinkxx_kept_bytes", kept_bytes_);
    gauge("tinkxx_checkpoints", checkpoints_.size());
    gauge("tinkxx_adapter_bytes", model_bytes_ + weights_bytes_);
    gauge("tinkxx_adapter_bytes_limit", options_.limits.adapter_bytes);
    send_bytes(*ask.answer, 200, "text/plain; version=0.0.4", std::move(text));
}

void Core::describe(Ask& ask) {
    send_json(*ask.answer, json_object([this](JsonOut& json) {
        json.member("name", "tinkxx");
        json.member("version", TINKXX_VERSION);
        json.member("api", "/api/v1");
        json.key("models");
        json.open_array();
        for (auto const& [name, base] : bases_) json.value(name);
        json.close_array();
    }));
}

void Core::not_served(Ask& ask) {
    auto const path = std::string_view{ask.request.target};
    auto const match = match_route(ask.request.method, path.substr(0, path.find('?')));
    throw Refused{404, std::string{ask.operation} +
                           " is not served by a local server: " + std::string{match.route->note}};
}

void Core::trace_export(Ask& ask) {
    if (!sessions_.contains(ask.names.at(0))) {
        throw Refused{404, "trace_export: there is no session " + ask.names.at(0).substr(0, 200)};
    }
    // The answer that the protocol has for it.
    send_json(*ask.answer, json_object([](JsonOut& json) {
        json.member("status", "failed");
        json.member("error",
                    "trace_export is not served by a local server: no traces are recorded");
    }));
}

}  // namespace tinkxx::local
