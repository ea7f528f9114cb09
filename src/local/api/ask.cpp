#include "local/api/ask.hpp"

#include "wire/server/answers.hpp"

#include <charconv>
#include <new>

namespace tinkxx::local {

Outcome<std::int64_t> Ask::number(std::string_view name, std::int64_t otherwise, std::int64_t least,
                                  std::int64_t most) const {
    auto const found = query.find(name);
    if (found == query.end()) return otherwise;
    auto const& text = found->second;
    std::int64_t value = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
        return Refused{400, std::string{operation} + ": " + std::string{name} + " is " +
                                text.substr(0, 64) + "; it must be a number from " +
                                std::to_string(least) + " to " + std::to_string(most)};
    }
    return value;
}

Outcome<Page> Ask::page(std::int64_t limit) const {
    auto const rows = number("limit", limit, 0, 10'000);
    if (!rows) return rows.refused();
    auto const first = number("offset", 0, 0, 1'000'000'000);
    if (!first) return first.refused();
    return Page{.offset = *first, .limit = *rows};
}

std::string Ask::base_url() const {
    auto const host = header("Host");
    return "http://" + std::string{host.empty() ? std::string_view{"localhost"} : host};
}

void send_bytes(Answer& answer, int status, std::string_view content_type, std::string body) {
    // A client takes a 400 without a length for the word of a proxy.
    answer.head(status, {{"Content-Type", std::string{content_type}}}, body.size());
    if (!body.empty()) answer.data(std::move(body));
    answer.done();
}

void send_json(Answer& answer, int status, std::string body) {
    send_bytes(answer, status, "application/json", std::move(body));
}

void send_json(Answer& answer, std::string body) { send_json(answer, 200, std::move(body)); }

void send_nothing(Answer& answer) {
    answer.head(204, {}, std::nullopt);
    answer.done();
}

void send_refusal(Answer& answer, Refused const& refused) {
    auto body = wire::server::encode_detail(refused.detail);
    Headers headers{{"Content-Type", "application/json"}};
    if (refused.retry_after) {
        headers.add("retry-after-ms", std::to_string(refused.retry_after->count()));
    }
    answer.head(refused.status, std::move(headers), body.size());
    answer.data(std::move(body));
    answer.done();
}

Refused not_written(std::string_view operation, Error const& why) {
    return {500, std::string{operation} + ": nothing was changed: " + why.what() +
                     "; make room on the disk of the server and send it again"};
}

void send_failure(Ask& ask, LogSink const& log, std::exception_ptr const& failure) {
    if (!ask.answer) return;  // handed on already, or nobody asked
    std::string const operation{ask.operation};
    try {
        std::rethrow_exception(failure);
    } catch (Error const& error) {
        send_refusal(*ask.answer, {400, operation + ": " + error.what()});
    } catch (std::bad_alloc const&) {
        send_refusal(*ask.answer,
                     {503, operation + ": the server has no memory for this now; send it again",
                      std::chrono::milliseconds{1000}});
    } catch (std::exception const& error) {
        if (log) log(LogLevel::error, "local server: " + operation + " failed: " + error.what());
        send_refusal(*ask.answer, {500, operation + ": " + error.what()});
    }
}

}  // namespace tinkxx::local
