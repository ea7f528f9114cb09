#pragma once

#include <tinkxx/scheduler.hpp>

#include <functional>
#include <utility>

namespace tinkxx::base {

/// A timer that counts its calls and does what a test says.
class Alarm final : public Timer {
public:
    explicit Alarm(std::function<void()> fn = {}) : fn_{std::move(fn)} {}
    void on_time() override {
        ++fired;
        auto const fn = fn_;  // it may destroy this
        if (fn) fn();
    }
    int fired{0};

private:
    std::function<void()> fn_;
};

}  // namespace tinkxx::base
