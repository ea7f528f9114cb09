#include <tinkxx/multipart.hpp>

#include <tinkxx/error.hpp>

#include "base/common/entropy.hpp"
#include "base/common/invalid.hpp"
#include "service/text/checks.hpp"
#include "service/text/query.hpp"

#include <algorithm>

namespace tinkxx {

namespace {

[[noreturn]] void refuse_part(std::string const& field, std::string const& value,
                              std::string const& rule) {
    base::refuse("multipart", field, value, field + ' ' + rule + ", got \"" + value + '"');
}

bool is_boundary(std::string_view text) noexcept {
    return !text.empty() && text.size() <= 70 && text.back() != ' ' &&
           std::ranges::all_of(text, [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                      std::string_view{"'()+_,-./:=? "}.find(c) != std::string_view::npos;
           });
}

// As browsers do it: a quote or a line break cannot end the parameter.
std::string quoted_value(std::string_view text) {
    std::string out = "\"";
    for (char const c : text) {
        if (c == '"') {
            out += "%22";
        } else if (c == '\r') {
            out += "%0D";
        } else if (c == '\n') {
            out += "%0A";
        } else {
            out += c;
        }
    }
    out += '"';
    return out;
}

}  // namespace

Multipart& Multipart::field(std::string_view name, QueryValue const& value) {
    std::string const key{name};
    if (auto const* parts = std::get_if<QueryValue::Parts>(&value.content())) {
        for (auto const& [part, inner] : *parts) {
            field(std::string{key}.append(1, '[').append(part).append(1, ']'), inner);
        }
    } else if (auto const* list = std::get_if<QueryValue::List>(&value.content())) {
        for (auto const& inner : *list) field(key + "[]", inner);
    } else if (auto text = service::text_of(value)) {
        parts_.push_back({.name = key, .is_file = false, .file = {.content = std::move(*text)}});
    }
    return *this;
}

Multipart& Multipart::file(std::string name, File file) {
    parts_.push_back({.name = std::move(name), .is_file = true, .file = std::move(file)});
    return *this;
}

Multipart& Multipart::boundary(std::string text) {
    boundary_ = std::move(text);
    return *this;
}

bool Multipart::occurs(std::string_view boundary) const noexcept {
    auto const line = "--" + std::string{boundary};
    return std::ranges::any_of(parts_, [&line](Part const& part) {
        return part.file.content.find(line) != std::string::npos;
    });
}

Multipart::Encoded Multipart::encode(std::uint64_t seed) const {
    auto boundary = boundary_;
    if (boundary.empty()) {
        do {
            seed = base::mix(seed);
            boundary = "tinkxx-" + std::to_string(seed) + '-' + std::to_string(base::mix(~seed));
        } while (occurs(boundary));
    } else if (!is_boundary(boundary)) {
        refuse_part("boundary", boundary, "must have 1 to 70 letters, digits or '()+_,-./:=?");
    } else if (occurs(boundary)) {
        refuse_part("boundary", boundary, "must not occur in the content");
    }

    Encoded out;
    out.content_type = "multipart/form-data; boundary=" + quoted_value(boundary);
    if (boundary.find_first_of("'()+,/:=? ") == std::string::npos) {
        out.content_type = "multipart/form-data; boundary=" + boundary;
    }
    for (auto const& part : parts_) {
        out.body +=
            "--" + boundary + "\r\nContent-Disposition: form-data; name=" + quoted_value(part.name);
        if (part.is_file) {
            auto headers = part.file.headers;
            if (!part.file.content_type.empty()) {
                headers.set("Content-Type", part.file.content_type);
            }
            if (auto const problem = service::check_headers(headers, "headers")) {
                refuse_part(problem->field, problem->value, "cannot be sent");
            }
            out.body += "; filename=" + quoted_value(part.file.name);
            for (auto const& [name, value] : headers) {
                out.body.append("\r\n").append(name).append(": ").append(value);
            }
        }
        out.body += "\r\n\r\n" + part.file.content + "\r\n";
    }
    out.body += "--" + boundary + "--\r\n";
    return out;
}

}  // namespace tinkxx
