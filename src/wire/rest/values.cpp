#include "wire/rest/values.hpp"

#include <array>
#include <charconv>
#include <utility>

namespace tinkxx::wire {

void read(JsonIn const& in, Timestamp& out) {
    auto const& value = in.value();
    std::string text;
    if (auto const* written = value.if_string()) {
        text.assign(written->data(), written->size());
    } else if (value.is_number()) {
        std::array<char, 400> digits{};
        auto const end = std::to_chars(digits.data(), digits.data() + digits.size(),
                                       value.to_number<double>(), std::chars_format::fixed);
        text.assign(digits.data(), end.ptr);
    }
    if (auto const time = parse_timestamp(text)) {
        out = *time;
    } else {
        in.fail("a time such as \"2026-01-31T00:00:00Z\"");
    }
}

void read(JsonIn const& in, Cursor& out) {
    out.offset = in.required<std::int64_t>("offset");
    out.limit = in.required<std::int64_t>("limit");
    out.total_count = in.required<std::int64_t>("total_count");
}

std::map<std::string, std::string> json_texts(JsonIn const& in, std::string_view name) {
    std::map<std::string, std::string> out;
    auto const found = in.optional<boost::json::object>(name);
    if (!found) return out;
    for (auto const& member : *found) {
        std::string text;
        JsonOut{text}.value(member.value());
        out.insert_or_assign(std::string{member.key().data(), member.key().size()},
                             std::move(text));
    }
    return out;
}

}  // namespace tinkxx::wire
