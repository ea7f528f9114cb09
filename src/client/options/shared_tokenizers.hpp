#pragma once

#include <tinkxx/options.hpp>
#include <tinkxx/tokenizer.hpp>

namespace tinkxx::client {

/// Those of the options, else those that all clients of the process share: files of this machine,
/// and bytes for `tinkxx/tiny`. Any thread.
[[nodiscard]] Tokenizers tokenizers_of(ClientOptions const& options);

}  // namespace tinkxx::client
