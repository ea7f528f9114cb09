#include "service/text/scrubber.hpp"

#include <tinkxx/redaction.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace tinkxx::service {

namespace {

std::string percent_encoded(std::string_view text) {
    constexpr std::string_view hex = "0123456789ABCDEF";
    std::string out;
    for (char const c : text) {
        auto const byte = static_cast<unsigned char>(c);
        bool const plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                           (c >= 'a' && c <= 'z') || c == '-' || c == '.' || c == '_' || c == '~';
        if (plain) {
            out += c;
        } else {
            out += {'%', hex[byte >> 4U], hex[byte & 15U]};
        }
    }
    return out;
}

std::string json_escaped(std::string_view text) {
    std::string out;
    for (char const c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

}  // namespace

std::string base64(std::string_view bytes) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t group = 0;
        for (std::size_t j = 0; j < 3; ++j) {
            group <<= 8U;
            if (i + j < bytes.size()) group |= static_cast<unsigned char>(bytes[i + j]);
        }
        for (std::size_t j = 0; j < 4; ++j) {
            out += i + j > bytes.size() ? '=' : digits[(group >> (18U - 6U * j)) & 63U];
        }
    }
    return out;
}

void Scrubber::add(std::string_view secret) {
    add_form(std::string{secret});
    add_form(percent_encoded(secret));
    add_form(json_escaped(secret));
}

void Scrubber::add_secrets_of(Headers const& headers) {
    for (auto const& [name, value] : headers) {
        if (!is_secret_header(name)) continue;
        add(value);
        // "Basic abc=": the second word alone is enough to get in.
        if (auto const space = value.rfind(' '); space != std::string::npos) {
            add(std::string_view{value}.substr(space + 1));
        }
    }
}

void Scrubber::add_form(std::string form) {
    if (form.size() < 4 || std::ranges::find(secrets_, form) != secrets_.end()) return;
    auto const place = std::ranges::find_if(
        secrets_, [&form](std::string const& other) { return other.size() < form.size(); });
    secrets_.insert(place, std::move(form));
}

std::string Scrubber::scrub(std::string_view text) const {
    std::string out{text};
    for (auto const& secret : secrets_) {
        for (auto at = out.find(secret); at != std::string::npos; at = out.find(secret, at)) {
            out.replace(at, secret.size(), redaction_marker);
            at += redaction_marker.size();
        }
    }
    return out;
}

Headers Scrubber::scrub(Headers const& headers) const {
    Headers shown;
    shown.reserve(headers.size());
    for (auto const& [name, value] : headers) {
        shown.add(name, is_secret_header(name) ? std::string{redaction_marker} : scrub(value));
    }
    return shown;
}

}  // namespace tinkxx::service
