// Two promises for one future could not both keep it.
#include <tinkxx/future.hpp>

bool use(tinkxx::Promise<int> promise) {
#ifdef TINKXX_OFFENDING
    tinkxx::Promise<int> copy{promise};
#else
    tinkxx::Promise<int> copy{std::move(promise)};
#endif
    return copy.set_value(1);
}
