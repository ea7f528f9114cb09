#pragma once

#include "net/stream/stream.hpp"

#include <memory>
#include <string>

namespace tinkxx::base {
class EventLoop;
}

namespace tinkxx::net {

/// A stream that gives out `prefix`, which was read too early, before what `lower` has.
[[nodiscard]] std::unique_ptr<Stream> make_prefixed_stream(base::EventLoop& loop,
                                                           std::unique_ptr<Stream> lower,
                                                           std::string prefix);

}  // namespace tinkxx::net
