#pragma once

// What most files of the library include. Precompiled by the presets that are built most often; the
// other builds show whether each file still includes what it uses.
#include <tinkxx/error.hpp>
#include <tinkxx/result.hpp>
#include <tinkxx/runtime.hpp>
#include <tinkxx/scheduler.hpp>
#include <tinkxx/transport.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>
