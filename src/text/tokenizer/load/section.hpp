#pragma once

#include "text/errors/refuse.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::text {

/// An object of a `tokenizer.json`, and where it is, for messages.
class Section {
public:
    Section(boost::json::object const& object, std::string path)
        : object_{&object}, path_{std::move(path)} {}

    [[nodiscard]] std::string const& path() const noexcept { return path_; }
    [[nodiscard]] std::string path_of(std::string_view key) const {
        return path_ + "." + std::string{key};
    }
    [[nodiscard]] boost::json::value const* find(std::string_view key) const noexcept;
    [[nodiscard]] std::string type() const { return text("type"); }

    /// Members; without a default they have to be there.
    [[nodiscard]] std::string text(std::string_view key) const;
    [[nodiscard]] std::string text(std::string_view key, std::string_view otherwise) const;
    [[nodiscard]] bool flag(std::string_view key) const;
    [[nodiscard]] bool flag(std::string_view key, bool otherwise) const;
    [[nodiscard]] std::size_t count(std::string_view key) const;
    [[nodiscard]] std::size_t count(std::string_view key, std::size_t otherwise) const;
    [[nodiscard]] Section section(std::string_view key) const;
    [[nodiscard]] std::vector<Section> sections(std::string_view key) const;

private:
    boost::json::object const* object_;
    std::string path_;
};

/// Reads the text of a section; calls `use` unless it is null.
void with_section(std::string_view json, std::string const& path,
                  std::function<void(Section const&)> const& use);

/// The sections that a section stands for: those in its list, if it is a sequence, and so on.
[[nodiscard]] std::vector<Section> flattened(Section const& section, std::string_view list);

}  // namespace tinkxx::text
