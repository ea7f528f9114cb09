#pragma once

// What nearly every test file includes. Precompiled by the presets; a build without TINKXX_PCH
// shows whether each file still includes what it uses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
