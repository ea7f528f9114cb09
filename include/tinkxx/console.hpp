#pragma once

#include <string>
#include <string_view>

/// URLs of pages in the hosted service's console. They are made from ids; no request is sent, so
/// whether a page exists is not checked. Any thread. `host` is the address of the console, without
/// a trailing slash.
namespace tinkxx::console {

inline constexpr std::string_view default_host = "https://tinker.thinkingmachines.ai";

/// The list of sessions.
[[nodiscard]] std::string sessions_url(std::string_view host = default_host);
/// A session, by the id of `ServiceClient::session_id`.
[[nodiscard]] std::string session_url(std::string_view session_id,
                                      std::string_view host = default_host);
/// A training run, by the id of `TrainingClient::model_id`.
[[nodiscard]] std::string training_run_url(std::string_view model_id,
                                           std::string_view host = default_host);
/// A checkpoint, by its path: `tinker://<run>/weights/<name>` or
/// `tinker://<run>/sampler_weights/<name>`. Throws `ValidationError` for other paths.
[[nodiscard]] std::string checkpoint_url(std::string_view path,
                                         std::string_view host = default_host);
/// The chat page of a checkpoint of sampler weights. Throws as `checkpoint_url`.
[[nodiscard]] std::string playground_url(std::string_view path,
                                         std::string_view host = default_host);

}  // namespace tinkxx::console
