#pragma once

#include <tinkxx/scheduler.hpp>

#include <functional>
#include <utility>

namespace tinkxx::support {

/// A timer that counts its calls and does what a test says.
class TestTimer final : public Timer {
public:
    TestTimer() = default;
    explicit TestTimer(std::function<void()> what) : action{std::move(what)} {}

    void on_time() override {
        ++fired;
        auto const keep = action;  // it may destroy this
        if (keep) keep();
    }

    int fired{0};
    std::function<void()> action{};
};

}  // namespace tinkxx::support
