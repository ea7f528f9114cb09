// A future is one-shot: a copy would have to decide who gets the value. `share()` makes one.
#include <tinkxx/future.hpp>

int use(tinkxx::Future<int> future) {
#ifdef TINKXX_OFFENDING
    auto copy = future;
#else
    auto copy = std::move(future);
#endif
    return copy.get();
}
