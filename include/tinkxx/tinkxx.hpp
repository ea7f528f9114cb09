#pragma once

// Everything of the client.

#include <tinkxx/error.hpp>
#include <tinkxx/future.hpp>
#include <tinkxx/http.hpp>
#include <tinkxx/http_client.hpp>
#include <tinkxx/log.hpp>
#include <tinkxx/multipart.hpp>
#include <tinkxx/net_transport.hpp>
#include <tinkxx/observer.hpp>
#include <tinkxx/options.hpp>
#include <tinkxx/query.hpp>
#include <tinkxx/redaction.hpp>
#include <tinkxx/result.hpp>
#include <tinkxx/runtime.hpp>
#include <tinkxx/scheduler.hpp>
#include <tinkxx/transport.hpp>
#include <tinkxx/version.hpp>
