#pragma once

#include <tinkxx/runtime.hpp>

#include <deque>
#include <utility>

namespace tinkxx::support {

/// Runs callbacks when the test says so.
class HeldExecutor final : public Executor {
public:
    void run(Task task) override {
        if (held) {
            tasks.push_back(std::move(task));
        } else {
            task();
        }
    }
    void release() {
        held = false;
        while (!tasks.empty()) {
            auto task = std::move(tasks.front());
            tasks.pop_front();
            task();
        }
    }
    bool held{false};
    std::deque<Task> tasks{};
};

}  // namespace tinkxx::support
