#include "commands/default_home.hpp"

#include <tinkxx/error.hpp>

#include <cstdlib>
#include <string>

namespace tinkxx::cli {

namespace fs = std::filesystem;

fs::path default_home() {
    auto const environment = [](char const* name) {
        auto const* const value = std::getenv(name);
        return value == nullptr ? std::string{} : std::string{value};
    };
    if (auto set = environment("TINKXX_HOME"); !set.empty()) return set;
    if (auto data = environment("XDG_DATA_HOME"); !data.empty()) return fs::path{data} / "tinkxx";
    if (auto own = environment("HOME"); !own.empty()) return fs::path{own} / ".local/share/tinkxx";
    Error{{.kind = ErrorKind::validation,
           .message = "home: neither TINKXX_HOME nor HOME is set; name a folder with --home",
           .field = "home"}}
        .raise();
}

}  // namespace tinkxx::cli
