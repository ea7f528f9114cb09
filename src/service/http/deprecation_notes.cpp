#include "service/http/deprecation_notes.hpp"

#include <algorithm>

namespace tinkxx::service {

std::optional<DeprecationNotes::Note> DeprecationNotes::read(Headers const& headers,
                                                             TimePoint now) {
    auto const* text = headers.find("x-deprecation-note");
    if (text == nullptr || text->empty()) return std::nullopt;
    if (auto const found = told_.find(*text); found != told_.end()) {
        if (now - found->second < pause) return std::nullopt;
        found->second = now;
    } else {
        if (told_.size() >= capacity) {
            std::erase_if(told_, [now](auto const& entry) { return now - entry.second >= pause; });
            if (told_.size() >= capacity) return std::nullopt;
        }
        told_.emplace(*text, now);
    }
    Note note{.level = LogLevel::warning, .text = *text};
    if (auto const* level = headers.find("x-deprecation-level")) {
        std::string word;
        for (char const c : *level) {
            if (c == ' ' || c == '\t') continue;
            word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        }
        if (word == "error") note.level = LogLevel::error;
    }
    return note;
}

}  // namespace tinkxx::service
