#pragma once

#include <tinkxx/future.hpp>
#include <tinkxx/runtime.hpp>

#include "service/core/client_core.hpp"
#include "wire/training_run.hpp"

#include <memory>
#include <string>

namespace tinkxx::service {

/// What the service knows about a run of the account's own. `sessionless` is a core without a
/// session (R-REST-00). Fails with `ValidationError` for an id that would lead elsewhere.
///
/// `repeat` is `once` for those who ask again anyway. Any thread.
[[nodiscard]] Future<wire::TrainingRun> get_training_run(Runtime const& runtime,
                                                         std::shared_ptr<ClientCore> sessionless,
                                                         std::string const& run_id, Repeat repeat);

}  // namespace tinkxx::service
