#pragma once

#include <tinkxx/result.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace tinkxx::local {

/// Faults that a server makes up, for tests of its clients.
struct ChaosPlan {
    /// How often a request is answered so instead of being served.
    std::map<int, double> statuses{};
    /// How often an answer is not given: the connection ends, whether or not the request was
    /// served.
    double drop{0};
    /// Each request waits for a time in between before it is served.
    std::chrono::nanoseconds shortest{0};
    std::chrono::nanoseconds longest{0};

    bool operator==(ChaosPlan const&) const = default;
};

/// `429:0.05,500:0.01,delay:50ms..2s,drop:0.01`, in any order; `delay:100ms` is always as long.
/// An empty text is no faults. Fails with a validation error that names the part that is wrong.
[[nodiscard]] Result<ChaosPlan> parse_chaos(std::string_view text);

/// What befalls one request.
struct Fault {
    std::chrono::nanoseconds delay{0};
    /// Answered with this instead of being served.
    std::optional<int> status{};
    enum class Drop : std::uint8_t { no, before, after } drop{Drop::no};
};

/// Draws faults by seed and ordinal, so that one does not shift the others.
class Chaos {
public:
    Chaos(ChaosPlan plan, std::uint64_t seed) : plan_{std::move(plan)}, seed_{seed} {}

    [[nodiscard]] Fault next();
    [[nodiscard]] bool quiet() const { return plan_ == ChaosPlan{}; }

private:
    ChaosPlan plan_;
    std::uint64_t seed_;
    std::uint64_t ordinal_{0};
};

}  // namespace tinkxx::local
