#include "frame/values.hpp"

#include <charconv>
#include <string>
#include <system_error>

namespace tinkxx::cli {

CLI::Validator not_empty() {
    return {[](std::string& text) {
                return text.empty() ? std::string{"the value is empty; leave the option out for its "
                                                  "default"}
                                    : std::string{};
            },
            ""};
}

CLI::Validator not_zero() {
    return {[](std::string& text) {
                return text == "0" ? std::string{"it must be 1 or more"} : std::string{};
            },
            ""};
}

CLI::Validator number_up_to(std::uint64_t most) {
    return {[most](std::string& text) {
                std::uint64_t value = 0;
                auto const* const end = text.data() + text.size();
                auto const [rest, error] = std::from_chars(text.data(), end, value);
                if (error == std::errc{} && rest == end && value <= most) {
                    text = std::to_string(value);
                    return std::string{};
                }
                return "'" + text + "' is not a number from 0 to " + std::to_string(most);
            },
            ""};
}

}  // namespace tinkxx::cli
