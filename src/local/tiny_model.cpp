#include <tinkxx/local/tiny_model.hpp>

#include <tinkxx/error.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

// Where CMake knows it to be; a program that was moved finds it beside itself.
#ifndef TINKXX_INSTALLED_MODELS
#define TINKXX_INSTALLED_MODELS ""
#endif
#ifndef TINKXX_SOURCE_MODELS
#define TINKXX_SOURCE_MODELS ""
#endif

namespace tinkxx::local {

namespace fs = std::filesystem;

ModelSource tiny_model() {
    std::vector<fs::path> places;
    if (auto const* const set = std::getenv("TINKXX_MODELS"); set != nullptr && *set != '\0') {
        places.emplace_back(set);
    }
    std::error_code none;
    if (auto const program = fs::read_symlink("/proc/self/exe", none); !none) {
        places.push_back(program.parent_path().parent_path() / "share/tinkxx/models");
    }
    for (char const* known : {TINKXX_INSTALLED_MODELS, TINKXX_SOURCE_MODELS}) {
        if (*known != '\0') places.emplace_back(known);
    }
    std::string looked;
    for (auto const& place : places) {
        auto folder = place / "tiny";
        if (fs::exists(folder / "config.json", none)) {
            return {.name = "tinkxx/tiny", .folder = std::move(folder), .byte_level = true};
        }
        looked += (looked.empty() ? "" : ", ") + folder.string();
    }
    Error{
        {.kind = ErrorKind::validation,
         .message = "tiny_model: the model that comes with tinkxx is not in " + looked +
                    "; set TINKXX_MODELS to the folder that holds it, or give a model of your own",
         .field = "TINKXX_MODELS"}}
        .raise();
}

}  // namespace tinkxx::local
