#pragma once

#include <tinkxx/local/options.hpp>

namespace tinkxx::local {

/// The small model that comes with tinkxx, named `tinkxx/tiny`. Its tokens are bytes: token 97 is
/// the letter a. It is looked for in `$TINKXX_MODELS`, next to the program
/// (`../share/tinkxx/models`), where tinkxx was installed, and where it was built. Throws
/// `ValidationError` if it is not found.
[[nodiscard]] ModelSource tiny_model();

}  // namespace tinkxx::local
