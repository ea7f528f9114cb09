#include "base/loop/destruction_flag.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

namespace tinkxx::base {
namespace {

/// Calls somebody, and notes whether it was there afterwards.
class Caller {
public:
    explicit Caller(std::vector<bool>& destroyed) : destroyed_after_{&destroyed} {}

    void call(std::function<void()> const& other) {
        auto* const notes = destroyed_after_;
        DestructionFlag::Watch const watch{destroyed_};
        other();
        notes->push_back(watch.destroyed());
    }
    [[nodiscard]] bool watched() const { return destroyed_.watched(); }

private:
    std::vector<bool>* destroyed_after_;
    DestructionFlag destroyed_{};
};

TEST(DestructionFlag, TellsOfADestructionInsideACall) {
    std::vector<bool> destroyed;
    auto caller = std::make_unique<Caller>(destroyed);
    caller->call([&] { caller.reset(); });
    EXPECT_EQ(destroyed, std::vector{true});
}

TEST(DestructionFlag, IsWatchedForTheTimeOfTheCall) {
    std::vector<bool> destroyed;
    Caller caller{destroyed};
    caller.call([&] { EXPECT_TRUE(caller.watched()); });
    EXPECT_EQ(destroyed, std::vector{false});
    EXPECT_FALSE(caller.watched());
}

TEST(DestructionFlag, TellsEachOfTheCallsThatNest) {
    std::vector<bool> destroyed;
    auto caller = std::make_unique<Caller>(destroyed);
    caller->call([&] { caller->call([&] { caller.reset(); }); });
    EXPECT_EQ(destroyed, (std::vector{true, true}));
}

TEST(DestructionFlag, WatchesOnAfterACallWithinIsOver) {
    std::vector<bool> destroyed;
    auto caller = std::make_unique<Caller>(destroyed);
    caller->call([&] {
        caller->call([] {});
        caller.reset();
    });
    EXPECT_EQ(destroyed, (std::vector{false, true}));
}

}  // namespace
}  // namespace tinkxx::base
