#include "text/jinja/values/call.hpp"

#include <algorithm>
#include <string>

namespace tinkxx::text::jinja {

Bound bind(Signature const& signature, Arguments const& arguments) {
    Bound bound;
    bound.fill(missing_value());
    auto const& names = signature.parameters;
    auto const known = static_cast<std::uint32_t>(
        std::find(names.begin(), names.end(), std::string_view{}) - names.begin());
    std::string const called = std::string{signature.name} + "()";
    if (arguments.count > known) {
        fail_type(called + " takes at most " + std::to_string(known) + " arguments (" +
                  std::to_string(arguments.count) + " given)");
    }
    std::copy_n(arguments.positional, arguments.count, bound.begin());
    for (std::uint32_t i = 0; i < arguments.keyword_count; ++i) {
        auto const name = arguments.keywords[i].name.view();
        auto const place = static_cast<std::uint32_t>(
            std::find(names.begin(), names.begin() + known, name) - names.begin());
        if (place == known) {
            fail_type(called + " got an unexpected keyword argument '" + std::string{name} + "'");
        }
        if (!bound[place].is_missing()) {
            fail_type(called + " got multiple values for argument '" + std::string{name} + "'");
        }
        bound[place] = arguments.keywords[i].value;
    }
    for (std::uint32_t i = 0; i < signature.required; ++i) {
        if (bound[i].is_missing()) {
            fail_type(called + " missing required argument '" + std::string{names[i]} + "'");
        }
    }
    return bound;
}

void expect_positional(std::string_view name, Arguments const& arguments, std::uint32_t least,
                       std::uint32_t most) {
    if (arguments.keyword_count != 0) {
        fail_type(std::string{name} + "() takes no keyword arguments");
    }
    if (arguments.count >= least && arguments.count <= most) return;
    fail_type(std::string{name} + "() takes " + (least == most ? "exactly " : "at most ") +
              std::to_string(arguments.count < least ? least : most) + " argument(s) (" +
              std::to_string(arguments.count) + " given)");
}

}  // namespace tinkxx::text::jinja
