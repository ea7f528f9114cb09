#pragma once

#include <tinkxx/local/options.hpp>
#include <tinkxx/result.hpp>
#include <tinkxx/scheduler.hpp>

#include "local/api/ask.hpp"
#include "local/store/worker.hpp"
#include "wire/server/requests.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace tinkxx::local {

[[nodiscard]] bool is_protobuf(Ask const& ask);

/// Reads the bodies of requests. The loop reads small ones only: all that takes time or memory is
/// done by workers, and small bodies do not wait for large ones. Loop thread.
class Bodies {
public:
    /// A larger body is read by a worker. JSON of this size takes the loop less than a millisecond.
    static constexpr std::size_t on_loop = std::size_t{16} << 10U;
    /// What most requests have at most.
    static constexpr std::size_t small_json = std::size_t{1} << 20U;

    /// `options` must outlive it.
    Bodies(ServerOptions const& options, std::array<std::unique_ptr<Worker>, 2> readers)
        : options_{options}, readers_{std::move(readers)} {}

    /// Reads the body by `read(std::string)`, which gives a `Result`, and goes on with
    /// `then(ask, value)` on the loop, which gives a `MaybeRefused`. `ask` is used up. `most`:
    /// bytes of the body, once it is decompressed. `read` must not touch the server.
    template <class Read, class Then>
    [[nodiscard]] MaybeRefused read(Ask& ask, std::size_t most, Read read, Then then);
    /// As above, for JSON of the size that most requests have.
    template <class Read, class Then>
    [[nodiscard]] MaybeRefused read_json(Ask& ask, Read read, Then then) {
        return this->read(ask, small_json, std::move(read), std::move(then));
    }
    /// What a body may take, for those that carry data.
    [[nodiscard]] std::size_t most_bytes(Ask const& ask) const;
    /// Who reads a body of this size.
    [[nodiscard]] Worker& reader(std::size_t bytes) { return *readers_[slot(bytes)]; }
    /// Bodies that wait to be read, or are being read.
    [[nodiscard]] std::size_t reading_bytes() const noexcept { return waiting_[0] + waiting_[1]; }
    /// Ends the workers; nobody is told any more.
    void stop() {
        for (auto& reader : readers_) reader.reset();
    }

private:
    template <class Read, class Then>
    struct Work;

    [[nodiscard]] static std::size_t slot(std::size_t bytes) noexcept {
        constexpr std::size_t small = std::size_t{256} << 10U;
        return bytes <= small ? 0 : 1;
    }
    [[nodiscard]] MaybeRefused check_size(Ask const& ask, std::size_t most) const;
    /// Queues the reading of a body; refuses it if too much is waiting.
    [[nodiscard]] MaybeRefused read_elsewhere(std::string const& operation, std::size_t bytes,
                                              Task work, Task done);

    ServerOptions const& options_;
    std::array<std::unique_ptr<Worker>, 2> readers_;
    std::array<std::size_t, 2> waiting_{};
};

/// A body that a worker reads.
template <class Read, class Then>
struct Bodies::Work {
    using Value = typename std::invoke_result_t<Read&, std::string>::value_type;

    Ask ask;
    Read read;
    Then then;
    std::optional<Value> value{};
    MaybeRefused refused{};

    /// On the worker.
    void decode(std::size_t most) {
        try {
            auto body = wire::server::decode_body(ask.operation, std::move(ask.request.body).join(),
                                                  ask.header("Content-Encoding"), most);
            if (!body) {
                refused = Refused{400, body.error().what()};
                return;
            }
            auto made = read(*std::move(body));
            if (made) {
                value.emplace(*std::move(made));
            } else {
                refused = Refused{422, made.error().what()};
            }
        } catch (Error const& error) {
            refused = Refused{400, error.what()};
        } catch (std::exception const& failed) {
            refused = Refused{
                503,
                std::string{ask.operation} + ": there is no memory to read it: " + failed.what(),
                std::chrono::milliseconds{1000}};
        }
    }
};

template <class Read, class Then>
MaybeRefused Bodies::read(Ask& ask, std::size_t most, Read read, Then then) {
    auto const bytes = ask.request.body.size();
    most = std::min(most, options_.limits.request_bytes);
    if (auto no = check_size(ask, most)) return no;
    auto const encoding = ask.header("Content-Encoding");
    bool const packed = !encoding.empty() && encoding != "identity";
    if (!packed && bytes <= on_loop) {
        auto value = read(std::move(ask.request.body).join());
        if (!value) return Refused{422, value.error().what()};
        return then(ask, *std::move(value));
    }
    std::string const operation{ask.operation};
    using Reading = Work<Read, Then>;
    auto const work =
        std::make_shared<Reading>(Reading{std::move(ask), std::move(read), std::move(then)});
    // How large it becomes is not known before it is decompressed.
    auto const weight = packed ? std::max(bytes, most) : bytes;
    // The caller's `ask` was moved from, so the caller cannot answer.
    run_endpoint(work->ask, options_.log, [&] {
        return read_elsewhere(
            operation, weight, [work, most] { work->decode(most); },
            [this, work] {
                run_endpoint(work->ask, options_.log, [&]() -> MaybeRefused {
                    if (work->refused) return work->refused;
                    return work->then(work->ask, *std::move(work->value));
                });
            });
    });
    return {};
}

}  // namespace tinkxx::local
