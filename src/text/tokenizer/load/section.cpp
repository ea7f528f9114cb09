#include "text/tokenizer/load/section.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <utility>

namespace tinkxx::text {

boost::json::value const* Section::find(std::string_view key) const noexcept {
    auto const* const found = object_->if_contains(key);
    return found == nullptr || found->is_null() ? nullptr : found;
}

std::string Section::text(std::string_view key) const {
    auto const* const found = find(key);
    if (found == nullptr || !found->is_string()) refuse_file(path_of(key), "has to be a string");
    return std::string{std::string_view{found->get_string()}};
}

std::string Section::text(std::string_view key, std::string_view otherwise) const {
    return find(key) == nullptr ? std::string{otherwise} : text(key);
}

bool Section::flag(std::string_view key) const {
    auto const* const found = find(key);
    if (found == nullptr || !found->is_bool()) refuse_file(path_of(key), "has to be true or false");
    return found->get_bool();
}

bool Section::flag(std::string_view key, bool otherwise) const {
    return find(key) == nullptr ? otherwise : flag(key);
}

std::size_t Section::count(std::string_view key) const {
    auto const* const found = find(key);
    if (found != nullptr && found->is_int64() && found->get_int64() >= 0) {
        return static_cast<std::size_t>(found->get_int64());
    }
    refuse_file(path_of(key), "has to be a number that is not negative");
}

std::size_t Section::count(std::string_view key, std::size_t otherwise) const {
    return find(key) == nullptr ? otherwise : count(key);
}

Section Section::section(std::string_view key) const {
    auto const* const found = find(key);
    if (found == nullptr || !found->is_object()) refuse_file(path_of(key), "has to be an object");
    return {found->get_object(), path_of(key)};
}

std::vector<Section> Section::sections(std::string_view key) const {
    auto const* const found = find(key);
    if (found == nullptr || !found->is_array()) refuse_file(path_of(key), "has to be a list");
    std::vector<Section> result;
    for (auto const& one : found->get_array()) {
        auto path = path_of(key) + "[" + std::to_string(result.size()) + "]";
        if (!one.is_object()) refuse_file(std::move(path), "has to be an object");
        result.emplace_back(one.get_object(), std::move(path));
    }
    return result;
}

void with_section(std::string_view json, std::string const& path,
                  std::function<void(Section const&)> const& use) {
    boost::json::error_code error;
    auto const value = boost::json::parse(json, error, {}, {.max_depth = 64});
    if (error) refuse_file(path, "is not JSON (" + error.message() + "); the file is damaged");
    if (value.is_null()) return;
    if (!value.is_object()) refuse_file(path, "has to be an object or null");
    use(Section{value.get_object(), path});
}

std::vector<Section> flattened(Section const& section, std::string_view list) {
    if (section.type() != "Sequence") return {section};
    std::vector<Section> result;
    for (auto const& one : section.sections(list)) {
        auto inner = flattened(one, list);
        result.insert(result.end(), inner.begin(), inner.end());
    }
    return result;
}

}  // namespace tinkxx::text
