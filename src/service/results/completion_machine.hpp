#pragma once

#include <tinkxx/error.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tinkxx::service {

/// Decides what follows each answer to the completion polls of one sampler (R-FUT-61, 62, 64,
/// 65), and remembers what they have to say. Touches no socket and reads no clock.
class CompletionMachine {
public:
    static constexpr std::chrono::seconds pause{1};
    static constexpr std::chrono::seconds billing_pause{5};
    static constexpr int most_bad_requests = 3;

    /// Poll again, but not before so much time.
    struct Again {
        std::chrono::nanoseconds delay{0};
    };
    /// 402: say by `on_billing` whether it is waited out.
    struct AskBilling {};
    /// No further poll: everyone asks for himself (R-FUT-66).
    struct FallBack {};
    using Action = std::variant<Again, AskBilling, FallBack>;

    /// A result, or its failure, was fetched: to be reported.
    void retrieved(std::string request_id) { unreported_.insert(std::move(request_id)); }
    [[nodiscard]] bool has_unreported() const noexcept { return !unreported_.empty(); }

    /// A poll begins; the ids that it reports, sorted. They stay as they are until it ends.
    [[nodiscard]] std::vector<std::string> const& begin();
    [[nodiscard]] std::int64_t cursor() const noexcept { return cursor_; }

    /// It succeeded. True if the cursor has moved, so that there may be more at once.
    bool on_success(std::int64_t cursor) noexcept;
    [[nodiscard]] Action on_error(Error const& error) noexcept;
    [[nodiscard]] Action on_billing(bool waited_out) noexcept;

private:
    std::int64_t cursor_{0};
    int bad_requests_{0};
    std::set<std::string, std::less<>> unreported_{};
    std::vector<std::string> reported_{};  ///< by the poll under way
};

}  // namespace tinkxx::service
