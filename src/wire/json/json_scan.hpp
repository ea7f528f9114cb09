#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::wire {

/// Steps through the members of a JSON object and passes over their values unread, at the speed of
/// memory: how a large result is told from an error without decoding it.
///
/// Brackets and quotes are followed, nothing else is checked; whoever reads a value checks it.
/// Needs no memory however deep values are nested.
class JsonScan {
public:
    struct Member {
        std::string name{};
        /// In the text, without blanks around it.
        std::string_view value{};
    };

    explicit JsonScan(std::string_view text) noexcept : text_{text} {}

    /// The next member; none at the end or where the text is no object.
    [[nodiscard]] std::optional<Member> next();
    /// Whether all of the text was one object. Known once `next` gave none.
    [[nodiscard]] bool complete() const noexcept { return state_ == State::complete; }
    /// How far it came.
    [[nodiscard]] std::size_t position() const noexcept { return at_; }

private:
    enum class State : unsigned char { start, members, complete, broken };

    std::optional<Member> stop(State state) noexcept {
        state_ = state;
        return std::nullopt;
    }
    void skip_blanks() noexcept;
    // Each leaves `at_` behind what it passes over, and says whether that was there.
    [[nodiscard]] bool skip(char c) noexcept;
    [[nodiscard]] bool skip_string() noexcept;
    [[nodiscard]] bool skip_nested() noexcept;
    [[nodiscard]] bool skip_value() noexcept;

    std::string_view text_;
    std::size_t at_{0};
    State state_{State::start};
};

}  // namespace tinkxx::wire
