// A future that is thrown away loses its result and its error without a word.
#include <tinkxx/future.hpp>

tinkxx::Future<int> start();

int use() {
#ifdef TINKXX_OFFENDING
    start();
#else
    auto future = start();
    return future.get();
#endif
    return 0;
}
