#include "service/auth/credential_choice.hpp"

#include <tinkxx/redaction.hpp>

#include <utility>

namespace tinkxx::service {

namespace {

ErrorDetails refused(std::string field, std::string value, std::string message) {
    ErrorDetails details;
    details.kind = ErrorKind::validation;
    details.category = ErrorCategory::user;
    details.field = std::move(field);
    details.value = std::move(value);
    details.message = std::move(message);
    return details;
}

ErrorDetails wrong_prefix(std::string field, std::string const& key) {
    auto shown = redact_key(key);
    auto message = field + " must begin with tml- (or be a JSON web token, eyJ), got \"" + shown +
                   "\"; check that the whole key was copied";
    return refused(std::move(field), std::move(shown), std::move(message));
}

CredentialChoice key(std::string value) {
    return {.kind = CredentialChoice::Kind::key, .value = std::move(value)};
}
CredentialChoice command(std::string text) {
    return {.kind = CredentialChoice::Kind::command, .value = std::move(text)};
}

}  // namespace

bool has_key_prefix(std::string_view key) noexcept {
    return key.starts_with("tml-") || is_jwt_key(key);
}

bool is_jwt_key(std::string_view key) noexcept { return key.starts_with("eyJ"); }

Result<CredentialChoice> choose_credential(CredentialConfig const& config) {
    if (has_key_prefix(config.api_key)) return key(config.api_key);
    if (!config.command.empty()) return command(config.command);
    // A stored key must not hide a wrong one.
    if (!config.api_key.empty()) return wrong_prefix("api_key", config.api_key);
    if (has_key_prefix(config.stored)) return key(config.stored);
    if (!config.stored.empty()) return wrong_prefix("credentials_file", config.stored);
    return refused("api_key", "",
                   "api_key is missing: set ClientOptions::api_key or TINKER_API_KEY, give a "
                   "command by ClientOptions::credential_cmd or TINKER_CREDENTIAL_CMD, or store a "
                   "key with `tinkxx auth login`");
}

Result<CredentialChoice> choose_credential(CredentialConfig const& config,
                                           wire::ClientFlags const& flags) {
    if (is_jwt_key(config.api_key)) return key(config.api_key);
    if (!flags.pjwt_auth_enabled) {
        auto only_keys = config;
        only_keys.command.clear();
        auto chosen = choose_credential(only_keys);
        if (chosen || config.command.empty()) return chosen;
        return refused("credential_cmd", "",
                       "credential_cmd cannot be used with this server, which takes API keys only: "
                       "set ClientOptions::api_key or TINKER_API_KEY");
    }
    if (flags.credential_default_source == "credential_cmd") {
        if (!config.command.empty()) return command(config.command);
        return refused("credential_cmd", "",
                       "credential_cmd is missing: your organisation requires dynamic "
                       "credentials; set ClientOptions::credential_cmd or TINKER_CREDENTIAL_CMD to "
                       "a command that prints one");
    }
    return choose_credential(config);
}

}  // namespace tinkxx::service
