// A result that is thrown away hides its error.
#include <tinkxx/future.hpp>

void use(tinkxx::Future<int> future) {
#ifdef TINKXX_OFFENDING
    future.result();
#else
    if (future.result().has_value()) return;
#endif
}
