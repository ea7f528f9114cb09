#include "service/telemetry/error_stack.hpp"

#include "service/telemetry/error_type.hpp"

namespace tinkxx::service {

namespace {

// What a user's exception says can be of any length.
constexpr std::size_t longest_stack = 4096;

std::string line_of(Error const& error) {
    std::string text{error_type(error)};
    if (auto const attempts = error.details().attempts; attempts > 0) {
        text += " after " + std::to_string(attempts) + " HTTP attempt" + (attempts > 1 ? "s" : "");
    }
    return text + ": " + error.what();
}

std::string bounded(std::string text) {
    if (text.size() > longest_stack) text.resize(longest_stack);
    return text;
}

}  // namespace

std::string error_causes(Error const& error) {
    std::string text;
    for (auto const* cause = error.cause(); cause != nullptr; cause = cause->cause()) {
        if (text.size() > longest_stack) break;
        text += text.empty() ? "caused by " : "\ncaused by ";
        text += line_of(*cause);
    }
    return bounded(std::move(text));
}

std::string error_stack(std::string_view operation, int attempt, Error const& error) {
    auto text =
        std::string{operation} + ", attempt " + std::to_string(attempt) + '\n' + line_of(error);
    if (auto const causes = error_causes(error); !causes.empty()) text += '\n' + causes;
    return bounded(std::move(text));
}

}  // namespace tinkxx::service
