#pragma once

#include <tinkxx/scheduler.hpp>

#include <source_location>

// "For the loop thread only", said of a class or member, means:
//
// - While a thread is inside `Scheduler::turn`, that thread is the loop thread: the I/O thread of a
//   runtime, or whoever polls one that has no threads (`Runtime::poll`, a future that is waited
//   for, `ManualClock::advance`). Nobody else may enter such a member.
// - While no thread is inside `turn`, there is no loop thread: before a loop begins, between two
//   polls, after the end. Then any thread may enter, one at a time, as with any object.
//
// `TINKXX_ASSERT_LOOP(scheduler)`, first in such a member, ends the process with the member's name
// if another thread is inside `turn`. With NDEBUG it is nothing.

#ifdef NDEBUG
#define TINKXX_ASSERT_LOOP(scheduler) static_cast<void>(0)
#else
#define TINKXX_ASSERT_LOOP(scheduler) ::tinkxx::base::assert_loop(scheduler)
#endif

namespace tinkxx::base {

/// Whether this build asserts the rule.
#ifdef NDEBUG
inline constexpr bool loop_rule_asserted = false;
#else
inline constexpr bool loop_rule_asserted = true;
#endif

/// By the macro above: costs a virtual call, and aborts if the rule is broken.
void assert_loop(Scheduler const& scheduler,
                 std::source_location where = std::source_location::current()) noexcept;

}  // namespace tinkxx::base
