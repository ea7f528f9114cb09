// A continuation that cannot take the value is refused at the call, not inside the library.
#include <tinkxx/future.hpp>

#include <string>

tinkxx::Future<int> use(tinkxx::Future<int> future) {
#ifdef TINKXX_OFFENDING
    return future.then([](std::string text) { return static_cast<int>(text.size()); });
#else
    return future.then([](int number) { return number + 1; });
#endif
}
