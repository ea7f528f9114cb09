#pragma once

#include <tinkxx/local/options.hpp>

namespace tinkxx::local {

/// The small model that comes with tinkxx, as `tinkxx/tiny`. It reads and writes bytes: token 97 is
/// the letter a. Looked for in `$TINKXX_MODELS`, beside the program (`../share/tinkxx/models`),
/// where tinkxx was installed, and where it was built. Throws `ValidationError` if it is nowhere.
[[nodiscard]] ModelSource tiny_model();

}  // namespace tinkxx::local
