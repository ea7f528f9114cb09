#include "base/loop/loop_rule.hpp"

#include <cstdio>
#include <cstdlib>

namespace tinkxx::base {

void assert_loop(Scheduler const& scheduler, std::source_location where) noexcept {
    if (!scheduler.turned_elsewhere()) return;
    std::fprintf(stderr,
                 "tinkxx: %s is for the loop thread only, and another thread is inside its turn "
                 "(%s:%u)\n",
                 where.function_name(), where.file_name(), static_cast<unsigned>(where.line()));
    std::abort();
}

}  // namespace tinkxx::base
