#include "wire/json/json.hpp"

#include "base/common/ascii.hpp"
#include "base/common/utf8.hpp"
#include "wire/json/base64.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/error.hpp>
#include <boost/json/parse_options.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_stack.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <iterator>
#include <system_error>

namespace tinkxx::wire {

namespace json = boost::json;

namespace {

// Builds values as boost::json::parser does, but with doubles that are exact.
struct Builder {
    static constexpr std::size_t max_object_size = json::object::max_size();
    static constexpr std::size_t max_array_size = json::array::max_size();
    static constexpr std::size_t max_key_size = json::string::max_size();
    static constexpr std::size_t max_string_size = json::string::max_size();

    explicit Builder(Doubles doubles) : exact{doubles == Doubles::exact} {}

    bool on_document_begin(json::error_code&) { return true; }
    bool on_document_end(json::error_code&) { return true; }
    bool on_object_begin(json::error_code&) { return true; }
    bool on_object_end(std::size_t n, json::error_code&) {
        stack.push_object(n);
        return true;
    }
    bool on_array_begin(json::error_code&) { return true; }
    bool on_array_end(std::size_t n, json::error_code&) {
        stack.push_array(n);
        return true;
    }
    bool on_key_part(json::string_view part, std::size_t, json::error_code&) {
        stack.push_chars(part);
        return true;
    }
    bool on_key(json::string_view part, std::size_t, json::error_code&) {
        stack.push_key(part);
        return true;
    }
    bool on_string_part(json::string_view part, std::size_t, json::error_code&) {
        stack.push_chars(part);
        return true;
    }
    bool on_string(json::string_view part, std::size_t, json::error_code&) {
        stack.push_string(part);
        return true;
    }
    bool on_number_part(json::string_view part, json::error_code&) {
        number.append(part.data(), part.size());
        return true;
    }
    bool on_int64(std::int64_t value, json::string_view, json::error_code&) {
        number.clear();
        stack.push_int64(value);
        return true;
    }
    bool on_uint64(std::uint64_t value, json::string_view, json::error_code&) {
        number.clear();
        stack.push_uint64(value);
        return true;
    }
    bool on_double(double value, json::string_view part, json::error_code& failed) {
        if (exact) {
            auto const* from = part.data();
            auto size = part.size();
            if (!number.empty()) {
                number.append(from, size);
                from = number.data();
                size = number.size();
            }
            // Out of range leaves what Boost.JSON made of it: zero or infinity.
            (void)std::from_chars(from, from + size, value);
        }
        number.clear();
        if (!std::isfinite(value)) {
            failed = json::error::exponent_overflow;
            return false;
        }
        stack.push_double(value);
        return true;
    }
    bool on_bool(bool value, json::error_code&) {
        stack.push_bool(value);
        return true;
    }
    bool on_null(json::error_code&) {
        stack.push_null();
        return true;
    }
    bool on_comment_part(json::string_view, json::error_code&) { return true; }
    bool on_comment(json::string_view, json::error_code&) { return true; }

    json::value_stack stack{};
    bool exact;
    std::string number{};
};

constexpr std::size_t shown_bytes = 64;

// The value for an error message: short, and all of it on one line.
std::string shown(json::value const& value) {
    switch (value.kind()) {
        case json::kind::array:
            return "an array of " + std::to_string(value.get_array().size());
        case json::kind::object:
            return "an object";
        case json::kind::string: {
            auto const& text = value.get_string();
            if (text.size() <= shown_bytes) return json::serialize(value);
            std::size_t most = shown_bytes;
            while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0U) == 0x80U) --most;
            return json::serialize(json::string_view{text.data(), most}) + "...";
        }
        default:
            return json::serialize(value);
    }
}

// The number that the whole of a text is.
template <class Number>
std::optional<Number> number_in(json::string const& text) {
    Number number{};
    auto const* const end = text.data() + text.size();
    auto const [stop, failed] = std::from_chars(text.data(), end, number);
    if (failed != std::errc{} || stop != end) return std::nullopt;
    return number;
}

std::optional<std::int64_t> integer_in(json::value const& value) {
    if (auto const* number = value.if_int64()) return *number;
    if (auto const* number = value.if_double()) {
        // 2^63 is a double, the largest int64 is not. -2^63 is both, but digits of a smaller number
        // are read as it; written as an integer it is no double.
        if (std::trunc(*number) == *number && *number > -0x1p63 && *number < 0x1p63) {
            return static_cast<std::int64_t>(*number);
        }
    }
    if (auto const* text = value.if_string()) return number_in<std::int64_t>(*text);
    return std::nullopt;  // an uint64 is one that no int64 holds
}

// Characters that stand for themselves in a JSON string.
constexpr auto plain = [] {
    std::array<bool, 256> table{};
    for (std::size_t c = 0x20; c < 0x80; ++c) table[c] = c != '"' && c != '\\';
    return table;
}();

// Three digits each: as they are, and without leading zeros, with their number behind them.
struct DigitGroups {
    std::array<std::array<char, 4>, 1000> padded{};
    std::array<std::array<char, 4>, 1000> leading{};
};
constexpr DigitGroups digit_groups = [] {
    DigitGroups out;
    for (std::size_t n = 0; n < 1000; ++n) {
        std::array<char, 3> const digits{static_cast<char>('0' + n / 100),
                                         static_cast<char>('0' + n / 10 % 10),
                                         static_cast<char>('0' + n % 10)};
        std::size_t const zeros = n >= 100 ? 0 : n >= 10 ? 1 : 2;
        for (std::size_t i = 0; i < 3; ++i) {
            out.padded[n][i] = digits[i];
            if (i >= zeros) out.leading[n][i - zeros] = digits[i];
        }
        out.leading[n][3] = static_cast<char>(3 - zeros);
    }
    return out;
}();

// Token ids have six digits at most, and then this takes half the time of std::to_chars. Writes
// up to seven characters, of which the last may be none.
char* write_integer(char* to, char* end, std::int32_t number) noexcept {
    auto const natural = static_cast<std::uint32_t>(number);
    if (natural >= 1'000'000) return std::to_chars(to, end, number).ptr;
    auto const append = [&to](std::array<char, 4> const& group, std::size_t digits) {
        std::memcpy(to, group.data(), group.size());
        to += digits;
    };
    auto const high = natural / 1000;
    auto const low = natural % 1000;
    auto const& first = digit_groups.leading[high == 0 ? low : high];
    append(first, static_cast<std::size_t>(first[3]));
    if (high != 0) append(digit_groups.padded[low], 3);
    return to;
}

// Calls write(from, to, number) for each number, with a comma behind each, and appends what was
// written in blocks: growing the string for every number would cost twice the time.
template <class Number, class Write>
void append_numbers(std::string& out, std::span<Number const> numbers, Write write) {
    constexpr std::size_t longest = 32;
    std::array<char, 4096> block;
    auto* to = block.data();
    auto* const full = block.data() + block.size() - longest;
    for (auto const number : numbers) {
        to = write(to, to + longest - 1, number);
        *to++ = ',';
        if (to > full) {
            out.append(block.data(), to);
            to = block.data();
        }
    }
    out.append(block.data(), to);
    if (!numbers.empty()) out.pop_back();
}

template <class Real>
char* write_real(char* to, char* end, Real number) noexcept {
    if (std::isfinite(number)) return std::to_chars(to, end, number).ptr;
    constexpr std::string_view null = "null";
    return std::copy(null.begin(), null.end(), to);
}

}  // namespace

std::optional<json::value> try_json(std::string_view text, std::string& why, Doubles doubles,
                                    json::storage_ptr storage) {
    json::parse_options options;
    options.max_depth = json_depth;
    json::basic_parser<Builder> parser{options, doubles};
    parser.handler().stack.reset(std::move(storage));
    json::error_code failed;
    auto const used = parser.write_some(false, text.data(), text.size(), failed);
    if (!failed && used < text.size()) failed = json::error::extra_data;
    if (!failed) return parser.handler().stack.release();
    why = failed.message() + " at byte " + std::to_string(used) + " of " +
          std::to_string(text.size());
    return std::nullopt;
}

Result<json::value> parse_json(std::string_view operation, std::string_view text, Doubles doubles,
                               json::storage_ptr storage) {
    std::string why;
    if (auto value = try_json(text, why, doubles, std::move(storage))) return *std::move(value);
    ErrorDetails details;
    details.kind = ErrorKind::validation;
    details.message =
        std::string{operation} + ": the answer is no JSON that can be read: " + why +
        "; check that TINKER_BASE_URL or ClientOptions::base_url names a Tinker server";
    return details;
}

json::value const* JsonIn::find(std::string_view name) const {
    auto const* object = value_->if_object();
    if (object == nullptr) {
        fail("an object");
        return nullptr;
    }
    return object->if_contains({name.data(), name.size()});
}

std::string JsonIn::place() const {
    if (parent_ == nullptr) return {};
    auto out = parent_->place() + '/';
    if (name_.data() == nullptr) return out + std::to_string(index_);
    for (char const c : name_) {  // as in JSON pointers
        if (c == '~') {
            out += "~0";
        } else if (c == '/') {
            out += "~1";
        } else {
            out += c;
        }
    }
    return out;
}

void JsonIn::fail(std::string_view expected) const {
    if (failure_->noted) return;
    *failure_ = {.noted = true,
                 .place = place(),
                 .expected = std::string{expected},
                 .value = shown(*value_)};
}

void JsonIn::missing(std::string_view name) const {
    if (failure_->noted) return;
    *failure_ = {.noted = true, .place = child(nullptr, name).place(), .expected = {}, .value = {}};
}

void JsonIn::tag(std::string_view name, std::string_view expected) const {
    auto const* member = find(name);
    if (member == nullptr || member->is_null()) return;
    auto const* text = member->if_string();
    if (text != nullptr && std::string_view{text->data(), text->size()} == expected) return;
    child(member, name).fail('"' + std::string{expected} + '"');
}

// Also written as text, as the official SDK allows.
void read(JsonIn const& in, bool& out) {
    if (auto const* truth = in.value().if_bool()) {
        out = *truth;
    } else if (auto const* text = in.value().if_string()) {
        auto const word = base::ascii_lower({text->data(), text->size()});
        out = word == "true";
        if (!out && word != "false") in.fail("true or false");
    } else {
        in.fail("true or false");
    }
}

void read(JsonIn const& in, std::int64_t& out) {
    if (auto const number = integer_in(in.value())) {
        out = *number;
    } else {
        in.fail("an integer of 64 bits");
    }
}

void read(JsonIn const& in, std::int32_t& out) {
    auto const number = integer_in(in.value());
    if (number && std::in_range<std::int32_t>(*number)) {
        out = static_cast<std::int32_t>(*number);
    } else {
        in.fail("an integer of 32 bits");
    }
}

void read_within(JsonIn const& in, std::int64_t least, std::int64_t most, std::int64_t& out) {
    auto const number = integer_in(in.value());
    if (number && *number >= least && *number <= most) {
        out = *number;
    } else {
        in.fail("an integer from " + std::to_string(least) + " to " + std::to_string(most));
    }
}

void read(JsonIn const& in, double& out) {
    auto const& value = in.value();
    if (auto const* number = value.if_double()) {
        out = *number;
    } else if (auto const* whole = value.if_int64()) {
        out = static_cast<double>(*whole);
    } else if (auto const* natural = value.if_uint64()) {
        out = static_cast<double>(*natural);
    } else if (auto const* text = value.if_string()) {
        auto const inside = number_in<double>(*text);
        if (!inside) return in.fail("a number");
        out = *inside;
    } else {
        in.fail("a number");
    }
}

void read(JsonIn const& in, float& out) {
    auto const number = in.as<double>();
    constexpr auto most = static_cast<double>(std::numeric_limits<float>::max());
    out = std::abs(number) > most && !std::isnan(number)
              ? std::copysign(std::numeric_limits<float>::infinity(), number < 0 ? -1.0F : 1.0F)
              : static_cast<float>(number);
}

void read(JsonIn const& in, std::string& out) {
    if (auto const* text = in.value().if_string()) {
        out.assign(text->data(), text->size());
    } else {
        in.fail("text");
    }
}

void read(JsonIn const& in, json::value& out) { out = in.value(); }

void read(JsonIn const& in, json::object& out) {
    if (auto const* object = in.value().if_object()) {
        out = *object;
    } else {
        in.fail("an object");
    }
}

ErrorDetails json_error(std::string_view operation, JsonIn::Failure const& failure) {
    ErrorDetails details;
    details.kind = ErrorKind::validation;
    details.field = failure.place;
    details.value = failure.value;
    details.message = std::string{operation};
    if (failure.expected.empty()) {
        details.message += ": the answer has no " + failure.place;
    } else {
        details.message += failure.place.empty() ? ": the answer" : ": " + failure.place;
        details.message += " should be " + failure.expected + ", and is " + failure.value;
    }
    details.message += "; the server may speak another version of the API";
    return details;
}

bool valid_utf8(std::string_view text) noexcept {
    auto const* at = text.data();
    auto const* const end = at + text.size();
    while (at != end) {
        auto const size = base::utf8_character(at, end);
        if (size == 0) return false;
        at += size;
    }
    return true;
}

void JsonOut::comma() {
    if (out_->empty()) return;
    auto const last = out_->back();
    if (last != '{' && last != '[' && last != ':' && last != ',') *out_ += ',';
}

void JsonOut::open(char bracket) {
    comma();
    *out_ += bracket;
}

void JsonOut::key(std::string_view name) {
    value(name);
    *out_ += ':';
}

void JsonOut::plain_key(std::string_view name) {
    auto& out = *out_;
    auto const last = out.empty() ? ',' : out.back();
    out.append(last == '{' || last == ',' ? "\"" : ",\"").append(name).append("\":");
}

void JsonOut::null() {
    comma();
    *out_ += "null";
}

void JsonOut::raw(std::string_view json) {
    comma();
    *out_ += json;
}

void JsonOut::value(bool truth) {
    comma();
    *out_ += truth ? "true" : "false";
}

void JsonOut::value(std::string_view text) {
    comma();
    *out_ += '"';
    auto const* at = text.data();
    auto const* const end = at + text.size();
    while (at != end) {
        auto const* const from = at;
        while (at != end && plain[static_cast<unsigned char>(*at)]) ++at;
        out_->append(from, at);
        if (at == end) break;
        auto const c = static_cast<unsigned char>(*at);
        if (c >= 0x80) {
            auto const size = base::utf8_character(at, end);
            if (size == 0) {
                *out_ += "\xef\xbf\xbd";
                ++at;
            } else {
                out_->append(at, size);
                at += size;
            }
            continue;
        }
        ++at;
        switch (c) {
            case '"':
                *out_ += "\\\"";
                break;
            case '\\':
                *out_ += "\\\\";
                break;
            case '\n':
                *out_ += "\\n";
                break;
            case '\r':
                *out_ += "\\r";
                break;
            case '\t':
                *out_ += "\\t";
                break;
            default: {
                constexpr std::string_view digits = "0123456789abcdef";
                *out_ += "\\u00";
                *out_ += digits[c >> 4U];
                *out_ += digits[c & 0xfU];
            }
        }
    }
    *out_ += '"';
}

void JsonOut::integer(std::int64_t number) {
    comma();
    std::array<char, 24> text;
    out_->append(text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr);
}

void JsonOut::natural(std::uint64_t number) {
    comma();
    std::array<char, 24> text;
    out_->append(text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr);
}

void JsonOut::value(double number) {
    comma();
    std::array<char, 32> text;
    out_->append(text.data(), write_real(text.data(), text.data() + text.size(), number));
}

void JsonOut::value(float number) {
    comma();
    std::array<char, 32> text;
    out_->append(text.data(), write_real(text.data(), text.data() + text.size(), number));
}

void JsonOut::value(json::value const& any) {
    switch (any.kind()) {
        case json::kind::null:
            return null();
        case json::kind::bool_:
            return value(any.get_bool());
        case json::kind::int64:
            return value(any.get_int64());
        case json::kind::uint64:
            return value(any.get_uint64());
        case json::kind::double_:
            return value(any.get_double());
        case json::kind::string:
            return value(std::string_view{any.get_string().data(), any.get_string().size()});
        case json::kind::array:
            open_array();
            for (auto const& element : any.get_array()) value(element);
            return close_array();
        case json::kind::object:
            return value(any.get_object());
    }
}

void JsonOut::value(json::object const& any) {
    open_object();
    for (auto const& member : any) {
        key({member.key().data(), member.key().size()});
        value(member.value());
    }
    close_object();
}

void JsonOut::bytes(std::string_view bytes) {
    comma();
    *out_ += '"';
    append_base64(*out_, bytes);
    *out_ += '"';
}

void JsonOut::list(std::span<std::int32_t const> numbers) {
    open_array();
    append_numbers(*out_, numbers, write_integer);
    close_array();
}

void JsonOut::list(std::span<std::int64_t const> numbers) {
    open_array();
    append_numbers(*out_, numbers, [](char* to, char* end, std::int64_t number) {
        return std::to_chars(to, end, number).ptr;
    });
    close_array();
}

void JsonOut::list(std::span<float const> numbers) {
    open_array();
    append_numbers(*out_, numbers, write_real<float>);
    close_array();
}

void JsonOut::list(std::span<std::string const> texts) {
    open_array();
    for (auto const& text : texts) value(text);
    close_array();
}

}  // namespace tinkxx::wire
