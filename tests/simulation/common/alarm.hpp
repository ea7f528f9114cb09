#pragma once

#include <tinkxx/scheduler.hpp>

#include <functional>

namespace tinkxx::simulation {

/// Does something at its time, which may be to set itself again.
struct Alarm final : Timer {
    void on_time() override {
        auto const keep = action;
        keep();
    }
    std::function<void()> action{};
};

}  // namespace tinkxx::simulation
