#include "local/api/pieces.hpp"

#include <tinkxx/testing/manual_clock.hpp>

#include <gtest/gtest.h>

#include <map>
#include <new>
#include <string>
#include <vector>

namespace tinkxx::local {
namespace {

void run(testing::ManualClock& clock) {
    while (clock.run_ready()) {
    }
}

TEST(Pieces, AreDoneOneInATurnOneWorkAfterTheOther) {
    testing::ManualClock clock;
    Pieces pieces{clock};
    std::string done;
    pieces.run([&done] { return (done += 'a').size() == 3; });
    EXPECT_EQ(done, "a") << "the first piece is done at once";
    pieces.run([&done] {
        done += 'b';
        return true;
    });
    EXPECT_EQ(done, "a");
    run(clock);
    EXPECT_EQ(done, "aaab");
}

TEST(Pieces, OfWorkThatThrowsHoldUpNobody) {
    testing::ManualClock clock;
    Pieces pieces{clock};
    int pieces_of_first = 0;
    bool second = false;
    pieces.run([&]() -> bool {
        if (++pieces_of_first == 2) throw std::bad_alloc{};
        return false;
    });
    pieces.run([&] { return second = true; });
    run(clock);
    EXPECT_EQ(pieces_of_first, 2);
    EXPECT_TRUE(second);
    bool third = false;
    pieces.run([&] { return third = true; });
    EXPECT_TRUE(third);
}

TEST(Walk, VisitsOnceWhatIsThereAllTheTime) {
    std::map<int, char> rows{{1, 'a'}, {3, 'c'}, {5, 'e'}};
    Walk walk{rows};
    std::vector<int> seen;
    auto const visit = [&seen](int key, char) { seen.push_back(key); };
    EXPECT_FALSE(walk.go_on(2, visit));
    rows.erase(3);
    rows[2] = 'b';
    rows[4] = 'd';
    EXPECT_TRUE(walk.go_on(9, visit));
    EXPECT_EQ(seen, (std::vector<int>{1, 3, 4, 5}));
}

}  // namespace
}  // namespace tinkxx::local
