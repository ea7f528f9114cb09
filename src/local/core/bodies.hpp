#pragma once

#include "local/core/core.hpp"
#include "wire/server_requests.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

// How endpoints read the bodies of their requests.

namespace tinkxx::local {

/// A larger body is read by a worker. JSON of this size takes the loop less than a millisecond.
inline constexpr std::size_t loop_body_bytes = std::size_t{16} << 10U;

/// The model and the number of a training request, whatever the rest of its body is like.
struct StepName {
    std::string model_id{};
    std::optional<std::int64_t> seq_id{};
};
[[nodiscard]] StepName name_of_step(std::string_view body, bool protobuf);
[[nodiscard]] bool is_protobuf(Ask const& ask);

template <class Fn>
void Core::guarded(Ask& ask, Fn const& part) {
    try {
        part();
    } catch (...) {
        answer_failure(ask, std::current_exception());
    }
}

template <class Read, class Then>
void Core::with_body(Ask& ask, std::size_t most, Read read, Then then) {
    using Value = typename std::invoke_result_t<Read&, std::string>::value_type;
    auto const bytes = ask.request.body.size();
    most = std::min(most, options_.limits.request_bytes);
    if (bytes > most) {
        throw Refused{413, std::string{ask.operation} + ": the body has " + std::to_string(bytes) +
                               " bytes, and the limit is " + std::to_string(most) +
                               "; send less at once"};
    }
    auto const encoding = ask.header("Content-Encoding");
    bool const packed = !encoding.empty() && encoding != "identity";
    if (!packed && bytes <= loop_body_bytes) {
        auto value = read(std::move(ask.request.body).join());
        if (!value) throw Refused{422, value.error().what()};
        return then(ask, *std::move(value));
    }
    struct Work {
        Ask ask;
        Read read;
        Then then;
        std::optional<Value> value{};
        std::optional<Refused> refused{};
    };
    std::string const operation{ask.operation};
    auto const work =
        std::make_shared<Work>(Work{std::move(ask), std::move(read), std::move(then)});
    auto const decode = [work, most] {
        auto& asked = work->ask;
        try {
            auto body =
                wire::server::decode_body(asked.operation, std::move(asked.request.body).join(),
                                          asked.header("Content-Encoding"), most);
            if (!body) {
                work->refused = Refused{400, body.error().what()};
                return;
            }
            auto value = work->read(*std::move(body));
            if (value) {
                work->value.emplace(*std::move(value));
            } else {
                work->refused = Refused{422, value.error().what()};
            }
        } catch (Refused const& refused) {
            work->refused = refused;
        } catch (Error const& error) {
            work->refused = Refused{400, error.what()};
        } catch (std::exception const& failed) {
            work->refused = Refused{
                503,
                std::string{asked.operation} + ": there is no memory to read it: " + failed.what(),
                std::chrono::milliseconds{1000}};
        }
    };
    auto const go_on = [this, work] {
        guarded(work->ask, [&] {
            if (work->refused) throw Refused{*work->refused};
            work->then(work->ask, *std::move(work->value));
        });
    };
    // How large it becomes is not known before it is decompressed.
    auto const weight = packed ? std::max(bytes, most) : bytes;
    try {
        read_elsewhere(operation, weight, decode, go_on);
    } catch (...) {
        // The caller's `ask` was moved from, so the caller cannot answer.
        answer_failure(work->ask, std::current_exception());
    }
}

template <class Read, class Then>
void Core::with_step(Ask& ask, std::size_t most, Read read, Then then) {
    using Value = typename std::invoke_result_t<Read&, std::string_view>::value_type;
    struct ReadStep {
        Result<Value> value;
        StepName name{};
    };
    bool const protobuf = is_protobuf(ask);
    with_body(
        ask, most,
        [read = std::move(read), protobuf](std::string body) mutable -> Result<ReadStep> {
            auto value = read(std::string_view{body});
            if (value) return ReadStep{.value = std::move(value)};
            return ReadStep{.value = std::move(value), .name = name_of_step(body, protobuf)};
        },
        [this, then = std::move(then)](Ask& asked, ReadStep step) mutable {
            if (step.value) return then(asked, *std::move(step.value));
            // Its number will not come again, unless in another form.
            refuse_step(step.name.model_id, step.name.seq_id);
            throw Refused{422, step.value.error().what()};
        });
}

}  // namespace tinkxx::local
