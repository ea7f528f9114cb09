// A user's own test links the test kit and nothing else.
#include <tinkxx/testing/manual_clock.hpp>

bool uses_the_test_kit() {
    tinkxx::testing::ManualClock clock;
    return clock.now() == clock.now();
}
