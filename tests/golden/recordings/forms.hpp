#pragma once

#include "golden/recordings/recording.hpp"

#include <string>
#include <string_view>

namespace tinkxx::golden {

/// Whether a recording has one of the forms that wire-not-applied.txt names. Throws if no form has
/// that name.
[[nodiscard]] bool has_form(std::string const& name, value const& recording);

/// The scripted answers of a recorded response at one path, each as often as it is given.
[[nodiscard]] std::vector<value> answers_at(value const& recording, std::string_view path);

}  // namespace tinkxx::golden
