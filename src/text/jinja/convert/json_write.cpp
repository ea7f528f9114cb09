#include "text/jinja/convert/json_text.hpp"
#include "text/jinja/convert/order.hpp"
#include "text/jinja/convert/text_of.hpp"
#include "text/jinja/values/budget.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tinkxx::text::jinja {
namespace {

constexpr int deepest_written = 400;
constexpr std::string_view hex = "0123456789abcdef";

class JsonWriter {
public:
    JsonWriter(std::string& to, JsonStyle const& style) : to_{to}, style_{style} {}

    void write(Value const& value, int depth) {
        look();
        if (depth > deepest_written) fail_value("Circular reference detected");
        check_text_size(to_.size());
        switch (value.kind) {
            case Kind::none:
                to_ += "null";
                return;
            case Kind::boolean:
                to_ += value.flag != 0 ? "true" : "false";
                return;
            case Kind::integer:
            case Kind::big_integer:
                append_text(to_, value);
                return;
            case Kind::real:
                real(value.real);
                return;
            case Kind::string:
                string(value.view());
                return;
            case Kind::list:
            case Kind::tuple:
                list(value, depth);
                return;
            case Kind::dict:
                dict(*value.dict, depth);
                return;
            default:
                fail_type("Object of type " + std::string{type_name(value)} +
                          " is not JSON serializable");
        }
    }

private:
    void real(double number) {
        if (std::isnan(number)) {
            to_ += "NaN";
        } else if (std::isinf(number)) {
            to_ += number < 0 ? "-Infinity" : "Infinity";
        } else {
            append_real(to_, number);
        }
    }

    void unit(std::uint32_t code) {
        to_ += "\\u";
        for (int shift = 12; shift >= 0; shift -= 4) {
            to_ += hex[(code >> static_cast<unsigned>(shift)) & 0xFU];
        }
    }

    void escape_beyond_ascii(std::uint32_t code) {
        if (code >= 0x10000U) {
            unit(0xD800U + ((code - 0x10000U) >> 10U));
            unit(0xDC00U + ((code - 0x10000U) & 0x3FFU));
        } else {
            unit(code);
        }
    }

    void string(std::string_view text) {
        to_ += '"';
        std::size_t begin = 0;
        for (std::size_t at = 0; at < text.size();) {
            auto const byte = static_cast<unsigned char>(text[at]);
            bool const plain =
                byte >= 0x20U && byte != '"' && byte != '\\' && (!style_.ascii || byte < 0x7FU);
            if (plain) {
                ++at;
                continue;
            }
            to_ += text.substr(begin, at - begin);
            escape(text, at);
            begin = at;
        }
        to_ += text.substr(begin);
        to_ += '"';
    }

    void escape(std::string_view text, std::size_t& at) {
        constexpr std::string_view letters = "\"\\\b\f\n\r\t";
        constexpr std::string_view names = "\"\\bfnrt";
        auto const code = static_cast<std::uint32_t>(next_character(text, at));
        auto const which =
            code < 0x80U ? letters.find(static_cast<char>(code)) : std::string_view::npos;
        if (which != std::string_view::npos) {
            to_ += '\\';
            to_ += names[which];
        } else {
            escape_beyond_ascii(code);
        }
    }

    void new_line(int depth) {
        to_ += '\n';
        for (int i = 0; i < depth; ++i) {
            to_ += style_.indent;
            check_text_size(to_.size());
        }
    }

    void separate(bool first, int depth) {
        if (!first) to_ += style_.item_separator;
        if (style_.indents) new_line(depth);
    }

    void list(Value const& value, int depth) {
        if (value.size == 0) {
            to_ += "[]";
            return;
        }
        to_ += '[';
        for (std::uint32_t i = 0; i < value.size; ++i) {
            separate(i == 0, depth + 1);
            write(value.items[i], depth + 1);
        }
        if (style_.indents) new_line(depth);
        to_ += ']';
    }

    void key(Value const& key) {
        switch (key.kind) {
            case Kind::string:
                string(key.view());
                return;
            case Kind::none:
            case Kind::boolean:
            case Kind::integer:
            case Kind::big_integer:
            case Kind::real:
                to_ += '"';
                write(key, 0);
                to_ += '"';
                return;
            default:
                fail_type("keys must be str, int, float, bool or None, not " +
                          std::string{type_name(key)});
        }
    }

    void dict(DictData const& dict, int depth) {
        if (dict.size == 0) {
            to_ += "{}";
            return;
        }
        std::vector<DictData::Entry> entries{dict.entries, dict.entries + dict.size};
        if (style_.sorted) {
            std::stable_sort(entries.begin(), entries.end(),
                             [](DictData::Entry const& left, DictData::Entry const& right) {
                                 return less(left.key, right.key);
                             });
        }
        to_ += '{';
        for (auto const& entry : entries) {
            separate(&entry == entries.data(), depth + 1);
            key(entry.key);
            to_ += style_.key_separator;
            write(entry.value, depth + 1);
        }
        if (style_.indents) new_line(depth);
        to_ += '}';
    }

    std::string& to_;
    JsonStyle const& style_;
};

}  // namespace

void write_json(std::string& to, Value const& value, JsonStyle const& style) {
    JsonWriter{to, style}.write(value, 0);
}

}  // namespace tinkxx::text::jinja
