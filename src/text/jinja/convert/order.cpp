#include "text/jinja/convert/order.hpp"

#include "text/jinja/convert/text_of.hpp"
#include "text/jinja/values/budget.hpp"

#include <algorithm>
#include <string>

namespace tinkxx::text::jinja {
namespace {

bool less_sequences(Value const& left, Value const& right, int depth) {
    auto const size = std::min(left.size, right.size);
    for (std::uint32_t i = 0; i < size; ++i) {
        if (!equal(left.items[i], right.items[i], depth)) {
            return less(left.items[i], right.items[i], depth);
        }
    }
    return left.size < right.size;
}

}  // namespace

bool less(Value const& left, Value const& right, int depth) {
    if (left.is_undefined()) fail_undefined(left);
    if (right.is_undefined()) fail_undefined(right);
    if (left.is_number() && right.is_number()) {
        if (left.is(Kind::real) || right.is(Kind::real)) return left.as_real() < right.as_real();
        return left.as_integer() < right.as_integer();
    }
    if (left.kind == right.kind) {
        if (left.is_string()) return left.view() < right.view();
        if (left.is_sequence()) {
            check_depth(depth);
            return less_sequences(left, right, depth + 1);
        }
    }
    fail_type("'<' not supported between instances of '" + std::string{type_name(left)} +
              "' and '" + std::string{type_name(right)} + "'");
}

}  // namespace tinkxx::text::jinja
