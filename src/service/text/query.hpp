#pragma once

#include <tinkxx/query.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::service {

/// Form-urlencodes: space as `+`, everything but letters, digits and `-._~` as `%XX`.
[[nodiscard]] std::string form_encode(std::string_view text);

/// The text of a value without parts, not encoded; lists joined by commas. Empty for null.
[[nodiscard]] std::optional<std::string> text_of(QueryValue const& value);

/// `query` as the text after a `?` (`protocol.md` §1.1); empty if nothing is left of it.
[[nodiscard]] std::string query_string(Query const& query);

/// Joins three sources of parameters, a later one replacing those of the same name of an
/// earlier one: the client's defaults, those written into the path (as they stand), and those of
/// the request (R-EXT-90).
[[nodiscard]] std::string merged_query(Query const& defaults, std::string_view in_path,
                                       Query const& of_request);

}  // namespace tinkxx::service
