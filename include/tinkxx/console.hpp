#pragma once

#include <string>
#include <string_view>

/// Pages of the hosted service's console, for people to look at what a program did. The addresses
/// are made of ids alone: nothing is asked, and nobody looks whether there is such a page. Any
/// thread. Here `host` is where the console is, without a slash at the end.
namespace tinkxx::console {

inline constexpr std::string_view default_host = "https://tinker.thinkingmachines.ai";

/// All sessions.
[[nodiscard]] std::string sessions_url(std::string_view host = default_host);
/// A session, such as `ServiceClient::session_id` gives.
[[nodiscard]] std::string session_url(std::string_view session_id,
                                      std::string_view host = default_host);
/// A training run, by `TrainingClient::model_id`.
[[nodiscard]] std::string training_run_url(std::string_view model_id,
                                           std::string_view host = default_host);
/// A checkpoint, by the path that saving it gave: `tinker://<run>/weights/<name>` or
/// `tinker://<run>/sampler_weights/<name>`. Throws `ValidationError` for another one.
[[nodiscard]] std::string checkpoint_url(std::string_view path,
                                         std::string_view host = default_host);
/// Where one can talk to a checkpoint of sampler weights. Throws as `checkpoint_url`.
[[nodiscard]] std::string playground_url(std::string_view path,
                                         std::string_view host = default_host);

}  // namespace tinkxx::console
