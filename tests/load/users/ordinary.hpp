#pragma once

#include "load/latencies.hpp"
#include "load/problems.hpp"
#include "load/users/questions.hpp"
#include "load/users/training.hpp"

#include <tinkxx/tinkxx.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tinkxx::load {

/// A few users who do nothing wrong: some ask for one token after the other and know the right
/// answer, one trains. No call of theirs may fail; the client repeats what the server refuses for
/// the moment, as it does for everybody.
class Ordinary {
public:
    Ordinary(std::string const& url, std::string const& key, std::uint64_t seed,
             std::chrono::seconds patience, Problems& problems);
    ~Ordinary() { stop(); }
    Ordinary(Ordinary const&) = delete;
    Ordinary& operator=(Ordinary const&) = delete;

    /// Waits until what they have begun has ended.
    void stop();
    /// Compares what the training run was told with the same calls on a quiet server.
    void repeat();

    [[nodiscard]] std::uint64_t samples() const { return samples_; }
    [[nodiscard]] std::uint64_t steps() const { return run_.steps(); }
    /// Of a sample, in seconds.
    [[nodiscard]] double longest_sample() const {
        std::scoped_lock const lock{mutex_};
        return latencies_.longest();
    }

private:
    void sample(std::size_t user);
    void train();
    [[nodiscard]] ServiceClient client() const;

    std::string const url_;
    std::string const key_;
    std::uint64_t const seed_;
    std::chrono::seconds const patience_;
    Problems& problems_;
    std::vector<Question> const questions_;
    Runtime const runtime_;
    UserTraining run_;
    std::atomic<bool> open_{true};
    std::atomic<std::uint64_t> samples_{0};
    mutable std::mutex mutex_{};
    Latencies latencies_{};  // guarded by the mutex
    std::vector<std::thread> threads_{};
};

}  // namespace tinkxx::load
