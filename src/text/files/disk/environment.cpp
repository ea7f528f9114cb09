#include "text/files/disk/environment.hpp"

#include <cstdlib>

namespace tinkxx::text {

namespace fs = std::filesystem;

Environment process_environment() {
    return [](char const* name) -> std::optional<std::string> {
        auto const* const value = std::getenv(name);
        if (value == nullptr) return std::nullopt;
        return value;
    };
}

namespace files {

std::string variable(Environment const& environment, char const* name) {
    return environment(name).value_or(std::string{});
}

fs::path path_of(std::string const& text, Environment const& environment) {
    if (text != "~" && !text.starts_with("~/")) return text;
    auto const home = variable(environment, "HOME");
    return home.empty() ? fs::path{text}
                        : fs::path{home} / fs::path{text.substr(1)}.relative_path();
}

fs::path hub_home(Environment const& environment) {
    if (auto const set = variable(environment, "HF_HOME"); !set.empty()) {
        return path_of(set, environment);
    }
    if (auto const set = variable(environment, "XDG_CACHE_HOME"); !set.empty()) {
        return path_of(set, environment) / "huggingface";
    }
    auto const home = variable(environment, "HOME");
    return home.empty() ? fs::path{} : fs::path{home} / ".cache/huggingface";
}

}  // namespace files

fs::path hub_cache_folder(Environment const& environment) {
    for (auto const* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
        auto const set = files::variable(environment, name);
        if (!set.empty()) return files::path_of(set, environment);
    }
    auto const home = files::hub_home(environment);
    return home.empty() ? home : home / "hub";
}

}  // namespace tinkxx::text
