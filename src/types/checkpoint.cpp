#include <tinkxx/types/checkpoint.hpp>

#include <array>

namespace tinkxx {
namespace {

constexpr std::array checkpoint_kinds{CheckpointKind::weights, CheckpointKind::sampler_weights,
                                      CheckpointKind::external_weights};

ErrorDetails bad_path(std::string_view text) {
    constexpr std::size_t most_shown = 200;
    std::string shown{text.substr(0, most_shown)};
    if (text.size() > most_shown) shown += "...";
    return {.kind = ErrorKind::validation,
            .message = "path is \"" + shown +
                       "\"; write it as tinker://<run>/<kind>/<name>, where the kind is weights, "
                       "sampler_weights or external_weights",
            .category = ErrorCategory::user,
            .field = "path",
            .value = shown};
}

}  // namespace

std::string_view to_string(CheckpointKind kind) noexcept {
    switch (kind) {
        case CheckpointKind::sampler_weights:
            return "sampler_weights";
        case CheckpointKind::external_weights:
            return "external_weights";
        case CheckpointKind::weights:
            break;
    }
    return "weights";
}

std::string_view checkpoint_type(CheckpointKind kind) noexcept {
    switch (kind) {
        case CheckpointKind::sampler_weights:
            return "sampler";
        case CheckpointKind::external_weights:
            return "external";
        case CheckpointKind::weights:
            break;
    }
    return "training";
}

std::string_view to_string(AccessScope scope) noexcept {
    return scope == AccessScope::accessible ? "accessible" : "owned";
}

std::string CheckpointPath::checkpoint_id() const {
    return std::string{to_string(kind)} + '/' + name;
}

std::string to_string(CheckpointPath const& path) {
    return "tinker://" + path.training_run_id + '/' + path.checkpoint_id();
}

Result<CheckpointPath> parse_checkpoint_path(std::string_view text) {
    constexpr std::string_view scheme = "tinker://";
    if (!text.starts_with(scheme)) return bad_path(text);
    auto const rest = text.substr(scheme.size());
    auto const first = rest.find('/');
    if (first == std::string_view::npos || first == 0) return bad_path(text);
    auto const second = rest.find('/', first + 1);
    if (second == std::string_view::npos) return bad_path(text);
    auto const name = rest.substr(second + 1);
    if (name.empty() || name.find('/') != std::string_view::npos) return bad_path(text);
    auto const kind_name = rest.substr(first + 1, second - first - 1);
    for (auto const kind : checkpoint_kinds) {
        if (kind_name != to_string(kind)) continue;
        return CheckpointPath{.training_run_id = std::string{rest.substr(0, first)},
                              .kind = kind,
                              .name = std::string{name}};
    }
    return bad_path(text);
}

}  // namespace tinkxx
