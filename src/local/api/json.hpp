#pragma once

#include "local/store/rows.hpp"
#include "wire/json/json.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::local {

/// A JSON object whose members `fill(JsonOut&)` writes.
template <class Fill>
[[nodiscard]] std::string json_object(Fill const& fill) {
    std::string text;
    wire::JsonOut json{text};
    json.open_object();
    fill(json);
    json.close_object();
    return text;
}

/// A member that is null if there is nothing: clients of some ages want it to be there.
template <class T>
void nullable(wire::JsonOut& json, std::string_view name, std::optional<T> const& value) {
    json.key(name);
    if (value) {
        json.value(*value);
    } else {
        json.null();
    }
}

/// As above; no texts at all are null.
inline void nullable(wire::JsonOut& json, std::string_view name, Texts const& texts) {
    json.key(name);
    if (texts.empty()) return json.null();
    json.open_object();
    for (auto const& [key, text] : texts) json.member(key, text);
    json.close_object();
}

}  // namespace tinkxx::local
