// Only g++ 12 refuses it: that compiler would destroy the arguments of the call twice.
#include <tinkxx/future.hpp>

#include <string>

struct Params {
    std::string name{};
};
tinkxx::Future<int> call(Params params);

tinkxx::Future<int> caller() {
    auto pending = call({.name = "fine"});
    int sum = co_await pending;
#ifdef TINKXX_OFFENDING
    static_assert(!tinkxx::detail::awaits_temporaries, "this compiler may");
    sum += co_await call({.name = "destroyed twice"});
#endif
    co_return sum;
}
