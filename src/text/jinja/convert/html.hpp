#pragma once

#include <string>
#include <string_view>

namespace tinkxx::text::jinja {

/// What the filter `striptags` does: comments and tags are left out, white space becomes one space,
/// and the entities that `unescape_html` knows become characters.
[[nodiscard]] std::string strip_tags(std::string_view text);
/// Numbers, and the entities that `escape_html` writes.
[[nodiscard]] std::string unescape_html(std::string_view text);
/// Python's `urllib.parse.quote`.
[[nodiscard]] std::string quote_url(std::string_view text, bool for_query);

}  // namespace tinkxx::text::jinja
