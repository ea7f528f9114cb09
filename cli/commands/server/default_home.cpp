#include "commands/server/default_home.hpp"

#include <tinkxx/error.hpp>

namespace tinkxx::cli {

namespace fs = std::filesystem;

fs::path default_home(Environment const& environment) {
    if (auto const set = environment("TINKXX_HOME")) return *set;
    if (auto const data = environment("XDG_DATA_HOME")) return fs::path{*data} / "tinkxx";
    if (auto const own = environment("HOME")) return fs::path{*own} / ".local/share/tinkxx";
    Error{{.kind = ErrorKind::validation,
           .message = "home: neither TINKXX_HOME nor HOME is set; name a folder with --home",
           .field = "home"}}
        .raise();
}

}  // namespace tinkxx::cli
