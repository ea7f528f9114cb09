#include "service/session/start_up.hpp"

#include <utility>

namespace tinkxx::service {

namespace {

constexpr std::string_view client_config_path = "/api/v1/client/config";
constexpr std::string_view create_session_path = "/api/v1/create_session";

}  // namespace

std::string_view to_string(StartUp::Step step) noexcept {
    switch (step) {
        case StartUp::Step::client_config:
            return "client config";
        case StartUp::Step::dynamic_config:
            return "dynamic config";
        case StartUp::Step::session:
            return "session";
        case StartUp::Step::done:
            return "done";
    }
    return "";
}

StartUp::StartUp(SessionKind kind, wire::CreateSession session)
    : kind_{kind}, request_{std::move(session)} {}

StartUp::StartUp(SessionSnapshot const& snapshot)
    : kind_{SessionKind::shadow},
      step_{Step::done},
      flags_{snapshot.flags},
      dynamic_{snapshot.dynamic} {
    session_.session_id = snapshot.session_id;
}

StartUp::Order StartUp::order() const {
    switch (step_) {
        case Step::client_config:
            return {.path = client_config_path,
                    .body = wire::encode_sdk_version(request_.sdk_version),
                    .purpose = Purpose::auth,
                    .repeat = Repeat::submit_loop};
        case Step::dynamic_config:
            return {.path = dynamic_config_path,
                    .body = wire::encode_sdk_version(request_.sdk_version),
                    .repeat = Repeat::submit_loop,
                    .http_retries = false,
                    .timeout = dynamic_timeout};
        case Step::session:
        case Step::done:
            break;
    }
    return {.path = create_session_path, .body = wire::encode_create_session(request_)};
}

std::optional<ErrorDetails> StartUp::on_answer(std::string_view body) {
    auto const in_step = [this](Error const& error) {
        auto details = error.details();
        details.message = with_operation("POST " + std::string{order().path}, details.message);
        return details;
    };
    switch (step_) {
        case Step::client_config: {
            auto flags = wire::decode_client_flags(body);
            if (!flags) return in_step(flags.error());
            flags_ = std::move(*flags);
            break;
        }
        case Step::dynamic_config: {
            auto flags = wire::decode_dynamic_flags(body);
            if (!flags) return in_step(flags.error());
            dynamic_ = *flags;
            break;
        }
        case Step::session: {
            auto session = wire::decode_session_created(body);
            if (!session) return in_step(session.error());
            session_ = std::move(*session);
            break;
        }
        case Step::done:
            break;
    }
    advance();
    return std::nullopt;
}

std::optional<std::string> StartUp::on_error(Error const& error) {
    bool const optional = step_ == Step::client_config || step_ == Step::dynamic_config;
    if (!optional || error.kind() != ErrorKind::status || error.http_status() != 404) {
        return std::nullopt;
    }
    if (step_ == Step::client_config) without_config_ = true;
    auto line = "this server has no " + std::string{to_string(step_)} + " (404): defaults are used";
    advance();
    return line;
}

void StartUp::advance() noexcept {
    switch (step_) {
        case Step::client_config:
            step_ = Step::dynamic_config;
            break;
        case Step::dynamic_config:
            step_ = kind_ == SessionKind::session ? Step::session : Step::done;
            break;
        case Step::session:
        case Step::done:
            step_ = Step::done;
            break;
    }
}

}  // namespace tinkxx::service
