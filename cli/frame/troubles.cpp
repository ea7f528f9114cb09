#include "frame/troubles.hpp"

#include <array>
#include <utility>

namespace tinkxx::cli {
namespace {

/// How an answer of the service is called, and what to do about it.
struct StatusWords {
    int status{0};
    std::string_view headline{};
    std::string_view way_out{};
};

constexpr std::array status_words{
    StatusWords{400, "invalid request", "tinkxx COMMAND --help says what the command takes"},
    StatusWords{401, "authentication failed", "tinkxx auth login, or set TINKER_API_KEY"},
    StatusWords{402, "billing issue", "check the billing set-up of your account"},
    StatusWords{403, "permission denied", "use the key of an account that may do this"},
    StatusWords{404, "not found",
                "tinkxx run list, checkpoint list and session list show what is there"},
    StatusWords{408, "no answer in time", "try again later, or with a longer --timeout"},
    StatusWords{409, "conflict", "the state is not what the command expects; look at it first"},
    StatusWords{422, "invalid data", "tinkxx COMMAND --help says what the command takes"},
    StatusWords{429, "rate limit reached", "try again later"},
};

Trouble words_of_status(int status) {
    for (auto const& [number, headline, way_out] : status_words) {
        if (number == status) {
            return {.headline = std::string{headline}, .way_out = std::string{way_out}};
        }
    }
    if (status >= 500) {
        return {.headline = "the server has an internal error",
                .way_out = "try again later; if it stays, report it with the id of the request"};
    }
    return {.headline = "the server answered with status " + std::to_string(status),
            .way_out = "see that --base-url or TINKER_BASE_URL is the address of a Tinker server"};
}

Trouble words_of(Error const& error) {
    if (error.http_status() && *error.http_status() >= 400) {
        return words_of_status(*error.http_status());
    }
    switch (error.kind()) {
        case ErrorKind::timeout:
            return {.headline = "no answer in time",
                    .way_out = "try again later, or with a longer --timeout"};
        case ErrorKind::connection:
            return {.headline = "the server cannot be reached",
                    .way_out =
                        "see that --base-url or TINKER_BASE_URL is right, and that the "
                        "server runs"};
        case ErrorKind::request_failed:
            return {.headline = "the server could not do it"};
        case ErrorKind::promise_lost:
            return {.headline = "the server has lost the request", .way_out = "try again"};
        case ErrorKind::cancelled:
            return {.headline = "cancelled"};
        default:
            break;
    }
    if (error.field() == "api_key") return words_of_status(401);
    return {.headline = "the command failed"};
}

}  // namespace

Trouble split_message(std::string headline, std::string_view message) {
    auto const cut = message.find("; ");
    return {.headline = std::move(headline),
            .reason = std::string{message.substr(0, cut)},
            .way_out = cut == std::string_view::npos ? std::string{}
                                                     : std::string{message.substr(cut + 2)}};
}

Trouble trouble_of(Error const& error) {
    auto words = words_of(error);
    std::string_view const message = error.what();
    // A call that ran out of time says behind its semicolon what it was doing.
    bool const late =
        error.kind() == ErrorKind::timeout && message.find("; it was ") != message.npos;
    if (late && message.find("paused for billing") != message.npos) words = words_of_status(402);
    auto trouble =
        late ? Trouble{.headline = std::move(words.headline), .reason = std::string{message}}
             : split_message(std::move(words.headline), message);
    if (trouble.way_out.empty()) trouble.way_out = std::move(words.way_out);
    if (!error.request_id().empty()) {
        trouble.reason += " [request " + std::string{error.request_id()} + "]";
    }
    return trouble;
}

Exit exit_of(Error const& error) noexcept {
    return error.retryable() ? Exit::retry : Exit::failure;
}

}  // namespace tinkxx::cli
