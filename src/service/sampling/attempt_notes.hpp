#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/observer.hpp>

#include "service/sampling/sample_order.hpp"
#include "service/sampling/sampler.hpp"

#include <chrono>
#include <cstdint>

namespace tinkxx::service {

/// Tells observers, telemetry and the log how an attempt of a sample goes. Made where it is used,
/// and not kept. Loop thread only.
class AttemptNotes {
public:
    /// Which attempt it is, of which call.
    struct Of {
        std::uint64_t id{0};
        std::int64_t attempt{0};
        /// Of the call so far.
        std::int64_t requests{0};
        /// The call.
        TimePoint started{};
    };

    AttemptNotes(Sampler const& sampler, SampleOrder const& order, Of of) noexcept
        : sampler_{sampler}, order_{order}, of_{of} {}

    void began() const;
    void succeeded(std::chrono::nanoseconds took) const;
    /// It is not repeated.
    void failed(Error const& error) const;
    void repeated(Error const& error, std::chrono::nanoseconds delay) const;
    /// For telemetry (R-RETRY-40).
    void report(Error const& error, bool retry) const;

private:
    [[nodiscard]] HttpContext& http() const noexcept { return sampler_.core().http(); }
    template <class Event>
    [[nodiscard]] Event event() const;

    Sampler const& sampler_;
    SampleOrder const& order_;
    Of const of_;
};

}  // namespace tinkxx::service
