#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tinkxx::text {

/// Reads JSON piece by piece, without a document: a vocabulary has some hundred thousand strings.
///
/// Throws `ValidationError` with the place of the first thing that is wrong.
class JsonReader {
public:
    /// `section`, which has to outlive the reader, is the member of the file that `json` is; empty
    /// for the whole file.
    explicit JsonReader(std::string_view json, std::string_view section = {})
        : text_{json}, section_{section} {}

    /// The first character of the next value; 0 at the end.
    [[nodiscard]] char peek();
    /// Whether the next character is this one, which is then read.
    [[nodiscard]] bool take(char c);
    void expect(char c);

    /// A string. Valid until the next is read.
    [[nodiscard]] std::string_view string();
    /// A number without a fraction, from 0 to 2^32 - 1.
    [[nodiscard]] std::uint32_t unsigned_number();
    [[nodiscard]] double number();

    /// Reads over any value, and gives its text.
    std::string_view skip();
    /// Fails if anything but white space follows.
    void expect_end();

    /// Calls `member(key)` for each member of an object; it has to read the value.
    template <class Member>
    void object(Member member) {
        expect('{');
        if (take('}')) return;
        do {
            auto const key = string();
            key_.assign(key);
            expect(':');
            member(std::string_view{key_});
        } while (take(','));
        expect('}');
    }
    /// Calls `element()` for each element of an array; it has to read it.
    template <class Element>
    void array(Element element) {
        expect('[');
        if (take(']')) return;
        do element();
        while (take(','));
        expect(']');
    }

    [[noreturn]] void fail(std::string_view what) const;

private:
    void skip_space() noexcept;
    void skip_string();
    [[nodiscard]] std::string_view escaped_string(std::size_t begin);
    [[nodiscard]] std::int64_t exponent_part();
    [[nodiscard]] char32_t hex4();
    void append_escape();

    std::string_view text_;
    std::string_view section_;
    std::size_t at_{0};
    std::string buffer_;
    std::string key_;
};

}  // namespace tinkxx::text
