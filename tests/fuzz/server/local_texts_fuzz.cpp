// Texts that come from outside: the chaos option, paths, queries, names, times, and who may come.
#include "local/api/access.hpp"
#include "local/common/times.hpp"
#include "local/core/chaos.hpp"
#include "local/core/routes.hpp"
#include "local/store/rows.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace tinkxx::local;
    std::string const text{reinterpret_cast<char const*>(data), size};
    if (auto const plan = parse_chaos(text)) {
        Chaos chaos{*plan, 1};
        for (int i = 0; i < 8; ++i) {
            auto const fault = chaos.next();
            if (fault.delay < plan->shortest || fault.delay > plan->longest) std::abort();
            if (fault.status && (*fault.status < 400 || *fault.status > 599)) std::abort();
        }
    } else if (plan.error().kind() != tinkxx::ErrorKind::validation) {
        std::abort();
    }
    for (auto const* method : {"GET", "POST", "DELETE", "PUT"}) (void)match_route(method, text);
    (void)parse_query(text);
    if (percent_decode(text).size() > text.size()) std::abort();
    if (auto const path = parse_tinker_path(text)) {
        // What is read is written in the long form, and read as the same.
        if (parse_tinker_path(path->text()) != path) std::abort();
        if (path->name.find('/') != std::string::npos) std::abort();
    }
    if (auto const time = parse_time(text)) {
        if (parse_time(iso_time(*time)) != time) std::abort();
        (void)http_date(*time);
    }
    for (auto const* name : {"Host", "Origin", "X-API-Key", "Authorization"}) {
        (void)forbidden({.api_key = "k"}, {.headers = {{name, text}}}, true);
        (void)forbidden({}, {.headers = {{"Host", "localhost"}, {name, text}}}, true);
    }
    return 0;
}
