#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// JSON as Python's `json` module reads and writes it. What models are trained with went through
/// that module: members keep their order, numbers keep their digits, and a malformed call is
/// described in its words. Nothing else in the library needs these particulars.
namespace tinkxx::text::render {

class Json {
public:
    enum class Kind : std::uint8_t { null, boolean, integer, real, string, array, object };
    using Member = std::pair<std::string, Json>;

    Json() = default;
    [[nodiscard]] static Json boolean(bool truth);
    /// An integer of any size, from its digits.
    [[nodiscard]] static Json integer(std::string digits);
    [[nodiscard]] static Json real(double number);
    [[nodiscard]] static Json string(std::string text);
    [[nodiscard]] static Json array();
    [[nodiscard]] static Json object();

    [[nodiscard]] Kind kind() const noexcept { return kind_; }
    [[nodiscard]] bool is_string() const noexcept { return kind_ == Kind::string; }
    [[nodiscard]] bool is_array() const noexcept { return kind_ == Kind::array; }
    [[nodiscard]] bool is_object() const noexcept { return kind_ == Kind::object; }
    /// A list or an object.
    [[nodiscard]] bool is_container() const noexcept { return is_array() || is_object(); }
    [[nodiscard]] bool is(bool truth) const noexcept;
    /// What `bool(value)` says in Python.
    [[nodiscard]] bool truthy() const noexcept;
    /// Of a string, its characters; of an integer, its digits.
    [[nodiscard]] std::string const& text() const noexcept { return text_; }
    [[nodiscard]] double number() const noexcept { return number_; }
    [[nodiscard]] std::vector<Json> const& items() const noexcept { return items_; }
    [[nodiscard]] std::vector<Member> const& members() const noexcept { return members_; }
    /// Null if there is no such member or the value is no object.
    [[nodiscard]] Json const* find(std::string_view name) const noexcept;

    void push(Json item) { items_.push_back(std::move(item)); }
    /// Appends a member; one of that name keeps its place and gets the new value.
    void set(std::string name, Json value);
    /// As `set` for names that are known to be new.
    void append(std::string name, Json value) {
        members_.emplace_back(std::move(name), std::move(value));
    }
    /// Members in the order of their names, here and below.
    void sort_members();

private:
    Kind kind_{Kind::null};
    bool truth_{false};
    double number_{0};
    std::string text_{};
    std::vector<Json> items_{};
    std::vector<Member> members_{};
};

/// Either the value of a text or what is wrong with it, such as
/// "Expecting value: line 1 column 3 (char 2)".
struct JsonRead {
    std::optional<Json> value{};
    std::string error{};
};
/// As `json.loads`. What is nested more than 900 deep and integers of more than 4,300 digits are
/// malformed here; there they end in other errors.
[[nodiscard]] JsonRead read_json(std::string_view text);

struct JsonStyle {
    std::string_view item_separator{", "};
    std::string_view key_separator{": "};
    /// All beyond ASCII is escaped.
    bool ascii{true};
};
/// As `json.dumps`.
[[nodiscard]] std::string write_json(Json const& value, JsonStyle const& style = {});
/// As `str(value)`: strings as they are, True and None, containers as Python writes them.
[[nodiscard]] std::string to_text(Json const& value);
/// As `repr(value)`.
[[nodiscard]] std::string to_repr(Json const& value);

}  // namespace tinkxx::text::render
