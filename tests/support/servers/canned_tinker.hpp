#pragma once

#include "support/servers/http_server.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::test {

struct CannedTinkerOptions {
    /// Tokens of every result, with logprobs.
    std::size_t tokens{256};
    /// Results as protobuf if the client takes it, else always JSON.
    bool protobuf{true};
    /// The answer to client/config.
    std::string flags{R"({"sample_max_concurrent_requests":100000})"};
    /// Before a result is given, and before a completion poll is answered.
    std::chrono::microseconds result_delay{0};
};

/// What a Tinker service answers, for tests and benchmarks over real sockets: sessions, samples and
/// their results, at as little cost as possible. A repeated submit gets the pending result of the
/// first.
class CannedTinker {
public:
    explicit CannedTinker(CannedTinkerOptions options);

    /// To be the handler of an `HttpServer`. Any thread.
    [[nodiscard]] Reaction operator()(ReceivedRequest const& request);

    /// Submits by sequence id. Any thread.
    [[nodiscard]] std::map<std::int64_t, int> submits() const;
    [[nodiscard]] std::size_t polls() const;

private:
    Reaction submit(ReceivedRequest const& request);
    Reaction result(ReceivedRequest const& request);
    Reaction completions(ReceivedRequest const& request);

    CannedTinkerOptions const options_;
    std::string json_result_{};
    std::string proto_result_{};
    mutable std::mutex mutex_{};  // guards what follows
    std::map<std::int64_t, int> submits_{};
    std::size_t polls_{0};
    std::vector<std::string> completed_{};
};

}  // namespace tinkxx::test
