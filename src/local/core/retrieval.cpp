#include "local/core/retrieval.hpp"

#include "base/loop/loop_rule.hpp"

namespace tinkxx::local {

namespace ws = wire::server;

namespace {

/// Of a poll that names results which were fetched.
constexpr std::size_t most_acknowledged = std::size_t{16} << 20U;

}  // namespace

MaybeRefused Retrieval::retrieve_future(Ask& ask) {
    TINKXX_ASSERT_LOOP(uses_.services.scheduler);
    bool const protobuf =
        ask.header("Accept").find("application/x-protobuf") != std::string_view::npos;
    return uses_.services.bodies.read_json(
        ask, [](std::string body) { return ws::decode_retrieve_future(body); },
        [this, protobuf](Ask& asked, ws::RetrieveFuture const& request) {
            auto const owner = request.request_id.substr(0, request.request_id.rfind(':'));
            if (auto const* const run = uses_.runs.find(owner)) {
                uses_.sessions.touch(run->session);
            } else if (auto const* const sampler = uses_.samplers.find(owner)) {
                uses_.sessions.touch(sampler->session);
            }
            return uses_.services.results->retrieve(request, protobuf, asked.answer);
        });
}

MaybeRefused Retrieval::retrieve_futures(Ask& ask) {
    TINKXX_ASSERT_LOOP(uses_.services.scheduler);
    return uses_.services.bodies.read(
        ask, most_acknowledged, [](std::string body) { return ws::decode_retrieve_futures(body); },
        [this](Ask& asked, ws::RetrieveFutures request) -> MaybeRefused {
            auto const* const sampler = uses_.samplers.find(request.sampling_session_id);
            if (sampler == nullptr) {
                return Refused{404, "retrieve_futures: there is no sampler " +
                                        request.sampling_session_id.substr(0, 200)};
            }
            // Those beyond go by themselves some time after they were fetched.
            constexpr std::size_t at_once = 4096;
            if (request.retrieved_request_ids.size() > at_once) {
                request.retrieved_request_ids.resize(at_once);
            }
            uses_.sessions.touch(sampler->session);
            uses_.services.results->completions(request, asked.answer);
            return {};
        });
}

}  // namespace tinkxx::local
