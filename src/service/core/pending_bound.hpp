#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/future.hpp>
#include <tinkxx/options.hpp>
#include <tinkxx/result.hpp>
#include <tinkxx/runtime.hpp>

#include <cstddef>
#include <functional>
#include <memory>

namespace tinkxx::service {

/// Bounds how many samples of a client are pending (`ClientOptions::max_pending`). Any thread.
class PendingBound : public std::enable_shared_from_this<PendingBound> {
public:
    /// A place among the pending; given up when the last copy goes.
    using Place = std::shared_ptr<void const>;

    [[nodiscard]] static std::shared_ptr<PendingBound> make(PendingLimit limit);
    virtual ~PendingBound() = default;

    /// Called before the caller is blocked, with what ends that: an error set there is the answer.
    using OnWait = std::function<void(std::shared_ptr<Promise<void>> turn)>;

    /// A place, null if there is no bound; or why there is none. May block, if that is what it does
    /// when full; on a thread of `runtime`, which must not, it refuses instead. On a runtime
    /// without threads it runs the loop.
    [[nodiscard]] virtual Result<Place> enter(Runtime const& runtime, OnWait const& on_wait) = 0;
};

}  // namespace tinkxx::service
