#pragma once

#include <CLI/CLI.hpp>
#include <tinkxx/rest_client.hpp>
#include <tinkxx/service_client.hpp>
