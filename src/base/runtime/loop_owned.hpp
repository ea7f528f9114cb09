#pragma once

#include "base/runtime/runtime_core.hpp"

#include <concepts>
#include <memory>
#include <utility>

namespace tinkxx::base {

/// Shares something that belongs to the loop, but whose handles may go anywhere, even inside one of
/// its own callbacks: the last of them has it destroyed on the loop. A loop that is gone destroys
/// the task, and what is in it. Whoever holds it weakly does not hold the runtime.
template <class Shown, std::derived_from<Shown> T>
[[nodiscard]] std::shared_ptr<Shown> loop_owned(std::shared_ptr<detail::RuntimeCore> const& runtime,
                                                std::unique_ptr<T> made) {
    return {made.release(), [core = runtime](T* last) mutable {
                auto const on = std::move(core);
                on->scheduler().post([owned = std::unique_ptr<T>{last}] {});
            }};
}

/// As above, and the runtime tells it of its shutdown.
template <class Shown, std::derived_from<Shown> T>
    requires std::derived_from<T, detail::Resident>
[[nodiscard]] std::shared_ptr<Shown> loop_owned_resident(
    std::shared_ptr<detail::RuntimeCore> const& runtime, std::unique_ptr<T> made) {
    auto* const raw = made.get();
    auto shared = loop_owned<Shown>(runtime, std::move(made));
    runtime->scheduler().post([runtime, raw, alive = std::weak_ptr<Shown>{shared}] {
        if (alive.lock()) runtime->add(*raw);
    });
    return shared;
}

}  // namespace tinkxx::base
