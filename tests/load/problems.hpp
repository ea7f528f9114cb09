#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::load {

/// What did not hold, in words; the first of many. Any thread.
class Problems {
public:
    void add(std::string text) {
        std::scoped_lock const lock{mutex_};
        ++count_;
        if (texts_.size() < 20) texts_.push_back(std::move(text));
    }
    [[nodiscard]] std::size_t count() const {
        std::scoped_lock const lock{mutex_};
        return count_;
    }
    [[nodiscard]] std::vector<std::string> texts() const {
        std::scoped_lock const lock{mutex_};
        return texts_;
    }

private:
    mutable std::mutex mutex_{};
    std::size_t count_{0};
    std::vector<std::string> texts_{};
};

}  // namespace tinkxx::load
