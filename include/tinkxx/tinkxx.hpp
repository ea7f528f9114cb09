#pragma once

// Everything of the client.

#include <tinkxx/call_options.hpp>
#include <tinkxx/circuit_breaker.hpp>
#include <tinkxx/credentials.hpp>
#include <tinkxx/error.hpp>
#include <tinkxx/future.hpp>
#include <tinkxx/http.hpp>
#include <tinkxx/http_client.hpp>
#include <tinkxx/log.hpp>
#include <tinkxx/metrics.hpp>
#include <tinkxx/multipart.hpp>
#include <tinkxx/net_transport.hpp>
#include <tinkxx/observer.hpp>
#include <tinkxx/options.hpp>
#include <tinkxx/poll_backoff.hpp>
#include <tinkxx/query.hpp>
#include <tinkxx/redaction.hpp>
#include <tinkxx/result.hpp>
#include <tinkxx/retry_budget.hpp>
#include <tinkxx/retry_config.hpp>
#include <tinkxx/runtime.hpp>
#include <tinkxx/sampling_client.hpp>
#include <tinkxx/scheduler.hpp>
#include <tinkxx/service_client.hpp>
#include <tinkxx/status.hpp>
#include <tinkxx/transport.hpp>
#include <tinkxx/types/model_input.hpp>
#include <tinkxx/types/queue_state.hpp>
#include <tinkxx/types/sampling.hpp>
#include <tinkxx/types/service.hpp>
#include <tinkxx/types/tensor_data.hpp>
#include <tinkxx/version.hpp>
