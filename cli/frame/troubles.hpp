#pragma once

#include "output/terminal.hpp"

#include <tinkxx/error.hpp>

#include <exception>
#include <string>
#include <string_view>

namespace tinkxx::cli {

/// Thrown by a command whose options or arguments cannot work: exit code 2.
class BadUsage : public std::exception {
public:
    explicit BadUsage(std::string reason, std::string way_out = {})
        : reason_{std::move(reason)}, way_out_{std::move(way_out)} {}

    char const* what() const noexcept override { return reason_.c_str(); }
    /// Empty: the help of the command.
    [[nodiscard]] std::string const& way_out() const noexcept { return way_out_; }

private:
    std::string reason_;
    std::string way_out_;
};

/// From "operation: cause; way out", as all messages of the library are.
[[nodiscard]] Trouble split_message(std::string headline, std::string_view message);

/// What went wrong with a call of a client.
[[nodiscard]] Trouble trouble_of(Error const& error);
/// 75 if the same command may succeed later, else 1.
[[nodiscard]] Exit exit_of(Error const& error) noexcept;

}  // namespace tinkxx::cli
