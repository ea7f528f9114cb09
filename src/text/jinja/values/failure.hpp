#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace tinkxx::text::jinja {

/// Why a template was refused, while it was compiled or while it ran.
///
/// The only exception in here. It never leaves the library: the public class turns it into a
/// `ValidationError`. Nothing that a template does in its ordinary course throws it.
class Failure {
public:
    enum class Kind : std::uint8_t {
        syntax,     ///< the template cannot be compiled
        undefined,  ///< an undefined value was used
        type,       ///< an operation that its operands do not have, or a wrong argument
        value,      ///< an operand or argument of the right type that cannot be used
        security,   ///< what the sandbox refuses
        limit,      ///< a bound of the options was reached
        raised,     ///< the template called `raise_exception`
        input,      ///< messages, tools or variables that are not the JSON they have to be
    };

    Failure(Kind kind, std::string message) : kind_{kind}, message_{std::move(message)} {}
    Failure(Kind kind, std::string message, std::uint32_t line)
        : kind_{kind}, message_{std::move(message)}, line_{line} {}

    [[nodiscard]] Kind kind() const noexcept { return kind_; }
    [[nodiscard]] std::string const& message() const noexcept { return message_; }
    /// Counted from 1; 0 if not known.
    [[nodiscard]] std::uint32_t line() const noexcept { return line_; }
    void set_line(std::uint32_t line) noexcept { line_ = line; }

private:
    Kind kind_;
    std::string message_;
    std::uint32_t line_{0};
};

[[noreturn]] inline void fail_type(std::string message) {
    throw Failure{Failure::Kind::type, std::move(message)};
}
[[noreturn]] inline void fail_value(std::string message) {
    throw Failure{Failure::Kind::value, std::move(message)};
}
[[noreturn]] inline void fail_limit(std::string message) {
    throw Failure{Failure::Kind::limit, std::move(message)};
}

}  // namespace tinkxx::text::jinja
