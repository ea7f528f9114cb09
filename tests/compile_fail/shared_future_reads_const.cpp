// Many readers share one value: none of them may change it.
#include <tinkxx/future.hpp>

#include <string>

std::size_t use(tinkxx::SharedFuture<std::string> const& future) {
#ifdef TINKXX_OFFENDING
    std::string& text = future.get();
#else
    std::string const& text = future.get();
#endif
    return text.size();
}
