#pragma once

#include <tinkxx/result.hpp>

#include <boost/json/value.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::wire {

// Reading ---------------------------------------------------------------------------------------

/// JSON nested deeper than this is refused.
inline constexpr std::size_t json_depth = 64;

/// Boost.JSON 1.81 reads one double in six of those with 17 digits to its neighbour. That does no
/// harm to a value that becomes a float; all others are read again, exactly.
enum class Doubles : std::uint8_t { exact, fast };

/// The value of a JSON text, or an error of kind validation that names `operation` and the place
/// in the text. Strict: no NaN, no byte order mark, nothing after the value, valid UTF-8 only.
[[nodiscard]] Result<boost::json::value> parse_json(std::string_view operation,
                                                    std::string_view text,
                                                    Doubles doubles = Doubles::exact,
                                                    boost::json::storage_ptr storage = {});

/// As above, for those who read what others ask: nothing, and in `why` what is wrong where.
[[nodiscard]] std::optional<boost::json::value> try_json(std::string_view text, std::string& why,
                                                         Doubles doubles = Doubles::exact,
                                                         boost::json::storage_ptr storage = {});

/// A value in a document that is being read, and the way to it.
///
/// Every read of something else than what is there gives a default and notes the failure; the
/// first one is what `decode_json` reports. So decoders need no checks of their own:
///
///     void read(JsonIn const& in, Cursor& out) {
///         out.offset = in.required<std::int64_t>("offset");
///         out.total = in.optional<std::int64_t>("total_count");
///     }
///
/// `read` overloads for other types are found in this namespace. Members that nobody asks for are
/// ignored.
class JsonIn {
public:
    struct Failure {
        bool noted{false};
        std::string place{};
        std::string expected{};
        std::string value{};
    };

    JsonIn(boost::json::value const* value, Failure& failure) noexcept
        : value_{value}, failure_{&failure} {}

    [[nodiscard]] boost::json::value const& value() const noexcept { return *value_; }
    [[nodiscard]] bool is_null() const noexcept { return value_->is_null(); }
    /// Whether nothing failed so far, anywhere in the document.
    [[nodiscard]] bool ok() const noexcept { return !failure_->noted; }

    template <class T>
    [[nodiscard]] T as() const {
        T out{};
        read(*this, out);
        return out;
    }
    /// The member, which must be there.
    template <class T>
    [[nodiscard]] T required(std::string_view name) const {
        auto const* member = find(name);
        if (member == nullptr) {
            missing(name);
            return T{};
        }
        return child(member, name).template as<T>();
    }
    /// The member; none if it is missing or null.
    template <class T>
    [[nodiscard]] std::optional<T> optional(std::string_view name) const {
        auto const* member = find(name);
        if (member == nullptr || member->is_null()) return std::nullopt;
        return child(member, name).template as<T>();
    }
    /// The member, or `otherwise` if it is missing. As in the official SDK a null is no value.
    template <class T>
    [[nodiscard]] T member_or(std::string_view name, T otherwise) const {
        auto const* member = find(name);
        if (member == nullptr) return otherwise;
        return child(member, name).template as<T>();
    }
    /// A member that, if it is there and not null, must have this text.
    void tag(std::string_view name, std::string_view expected) const;

    /// Calls `fn(JsonIn)` for each element of an array, until something fails.
    template <class Fn>
    void each(Fn fn) const {
        auto const* array = value_->if_array();
        if (array == nullptr) return fail("an array");
        std::size_t index = 0;
        for (auto const& element : *array) {
            JsonIn in{&element, *failure_};
            in.parent_ = this;
            in.index_ = index++;
            fn(in);
            if (!ok()) return;
        }
    }
    /// Calls `fn(name, JsonIn)` for each member of an object, until something fails.
    template <class Fn>
    void each_member(Fn fn) const;

    /// Notes that this value is not what was `expected` here, such as "an integer".
    void fail(std::string_view expected) const;

private:
    [[nodiscard]] boost::json::value const* find(std::string_view name) const;
    [[nodiscard]] JsonIn child(boost::json::value const* value,
                               std::string_view name) const noexcept {
        JsonIn in{value, *failure_};
        in.parent_ = this;
        in.name_ = name;
        return in;
    }
    void missing(std::string_view name) const;
    [[nodiscard]] std::string place() const;

    boost::json::value const* value_;
    Failure* failure_;
    JsonIn const* parent_{nullptr};  // lives on the stack of whoever reads it
    std::string_view name_{};
    std::size_t index_{0};
};

void read(JsonIn const& in, bool& out);
/// Integers may be written as whole floats or, as the official SDK allows, as text.
void read(JsonIn const& in, std::int64_t& out);
void read(JsonIn const& in, std::int32_t& out);
/// An integer from `least` to `most`, which the error for any other value names.
void read_within(JsonIn const& in, std::int64_t least, std::int64_t most, std::int64_t& out);
void read(JsonIn const& in, double& out);
void read(JsonIn const& in, float& out);
void read(JsonIn const& in, std::string& out);
/// As it is, whatever it is.
void read(JsonIn const& in, boost::json::value& out);
void read(JsonIn const& in, boost::json::object& out);

template <class T>
void read(JsonIn const& in, std::optional<T>& out) {
    if (in.is_null()) {
        out.reset();
    } else {
        out = in.as<T>();
    }
}
template <class T>
void read(JsonIn const& in, std::vector<T>& out) {
    if (auto const* array = in.value().if_array()) out.reserve(array->size());
    in.each([&out](JsonIn const& element) { out.push_back(element.as<T>()); });
}
template <class T, class Less>
void read(JsonIn const& in, std::map<std::string, T, Less>& out) {
    in.each_member([&out](std::string_view name, JsonIn const& member) {
        out.insert_or_assign(std::string{name}, member.as<T>());
    });
}

template <class Fn>
void JsonIn::each_member(Fn fn) const {
    auto const* object = value_->if_object();
    if (object == nullptr) return fail("an object");
    for (auto const& member : *object) {
        std::string_view const name{member.key().data(), member.key().size()};
        fn(name, child(&member.value(), name));
        if (!ok()) return;
    }
}

/// The error for a document that is not what it should be. The message names the operation, the
/// place and what was expected there; `field` is the place, `value` what stands there, shortened.
[[nodiscard]] ErrorDetails json_error(std::string_view operation, JsonIn::Failure const& failure);

/// Reads a `T` from a document by the `read` overload for it; the document is an object. Errors are
/// of kind validation; their field is the place, such as `/sequences/0/tokens/3`.
template <class T>
[[nodiscard]] Result<T> decode_json(std::string_view operation, std::string_view text,
                                    Doubles doubles = Doubles::exact,
                                    boost::json::storage_ptr storage = {}) {
    auto const document = parse_json(operation, text, doubles, std::move(storage));
    if (!document) return document.error();
    JsonIn::Failure failure;
    JsonIn const in{&*document, failure};
    T out{};
    if (document->is_object()) {
        read(in, out);
    } else {
        in.fail("an object");
    }
    if (failure.noted) return json_error(operation, failure);
    return out;
}

// Writing ---------------------------------------------------------------------------------------

/// Whether text is UTF-8 throughout, as JSON must be.
[[nodiscard]] bool valid_utf8(std::string_view text) noexcept;

/// Appends JSON to a string. Commas come by themselves.
///
///     JsonOut json{body};
///     json.open_object();
///     json.member("session_id", id);
///     json.key("tags");
///     json.list(tags);
///     json.close_object();
class JsonOut {
public:
    explicit JsonOut(std::string& out) noexcept : out_{&out} {}

    void open_object() { open('{'); }
    void close_object() { *out_ += '}'; }
    void open_array() { open('['); }
    void close_array() { *out_ += ']'; }
    /// The name of the member whose value comes next.
    void key(std::string_view name);
    /// As above; a literal holds nothing that needs an escape.
    template <std::size_t size>
    void key(char const (&name)[size]) {
        plain_key({name, size - 1});
    }

    void null();
    void value(bool truth);
    /// Bytes that are no UTF-8 become U+FFFD, so that what is sent is always JSON. Whoever must not
    /// alter a text checks it by `valid_utf8` before.
    void value(std::string_view text);
    void value(char const* text) { value(std::string_view{text}); }
    void value(std::string const& text) { value(std::string_view{text}); }
    template <std::integral Integer>
        requires(!std::same_as<Integer, bool>)
    void value(Integer number) {
        if constexpr (std::is_signed_v<Integer>) {
            integer(static_cast<std::int64_t>(number));
        } else {
            natural(static_cast<std::uint64_t>(number));
        }
    }
    /// The shortest text that reads as the same number. JSON knows no NaN or infinity: null.
    void value(double number);
    void value(float number);
    void value(boost::json::value const& any);
    void value(boost::json::object const& any);
    /// A value that is JSON already.
    void raw(std::string_view json);
    /// As base64 text.
    void bytes(std::string_view bytes);

    void list(std::span<std::int32_t const> numbers);
    void list(std::span<std::int64_t const> numbers);
    /// The shortest texts that read as the same floats, which takes half the bytes of the doubles
    /// that the official SDK writes.
    void list(std::span<float const> numbers);
    void list(std::span<std::string const> texts);

    template <class Name, class T>
    void member(Name const& name, T const& content) {
        key(name);
        value(content);
    }
    /// Left out if there is none, as R-WIRE-02 wants.
    template <class Name, class T>
    void member(Name const& name, std::optional<T> const& content) {
        if (content) member(name, *content);
    }

private:
    void plain_key(std::string_view name);
    void open(char bracket);
    void comma();
    void integer(std::int64_t number);
    void natural(std::uint64_t number);

    std::string* out_;
};

/// One object; `members` writes what is in it.
template <class Fn>
[[nodiscard]] std::string json_object(Fn members) {
    std::string out;
    JsonOut json{out};
    json.open_object();
    members(json);
    json.close_object();
    return out;
}

}  // namespace tinkxx::wire
