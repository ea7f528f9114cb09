#include "local/api/bodies.hpp"

namespace tinkxx::local {

bool is_protobuf(Ask const& ask) {
    return ask.header("Content-Type").find("protobuf") != std::string_view::npos;
}

MaybeRefused Bodies::check_size(Ask const& ask, std::size_t most) const {
    auto const bytes = ask.request.body.size();
    if (bytes <= most) return {};
    return Refused{413, std::string{ask.operation} + ": the body has " + std::to_string(bytes) +
                            " bytes, and the limit is " + std::to_string(most) +
                            "; send less at once"};
}

std::size_t Bodies::most_bytes(Ask const& ask) const {
    auto const& limits = options_.limits;
    return is_protobuf(ask) ? limits.request_bytes
                            : std::min(limits.request_bytes, limits.json_bytes);
}

MaybeRefused Bodies::read_elsewhere(std::string const& operation, std::size_t bytes, Task work,
                                    Task done) {
    auto& waiting = waiting_[slot(bytes)];
    if (waiting > 0 && waiting + bytes > options_.limits.reading_bytes) {
        return Refused{503,
                       operation + ": bodies of " + std::to_string(waiting) +
                           " bytes wait to be read, and the limit is " +
                           std::to_string(options_.limits.reading_bytes) + "; send it again",
                       std::chrono::milliseconds{500}};
    }
    waiting += bytes;
    reader(bytes).run(std::move(work), [&waiting, bytes, done = std::move(done)]() mutable {
        waiting -= bytes;
        done();
    });
    return {};
}

}  // namespace tinkxx::local
