#pragma once

#include "text/jinja/values/value.hpp"

#include <cstdint>

namespace tinkxx::text::jinja {

class Machine;
struct Activation;
struct ForNode;

/// What gives values one after the other, once: Python's generators. Made in an arena.
class Iteration {
public:
    /// False at the end.
    [[nodiscard]] virtual bool next(Machine& machine, Value& value) = 0;

protected:
    Iteration() = default;
    Iteration(Iteration const&) = default;
    Iteration& operator=(Iteration const&) = default;
    ~Iteration() = default;
};

/// Python's `iter(value)`.
class Walk {
public:
    Walk() = default;
    /// Throws if the value cannot be iterated over.
    explicit Walk(Value const& over);

    [[nodiscard]] bool next(Machine& machine, Value& value) {
        if (over_.is_sequence()) {
            if (position_ >= over_.size) return false;
            value = over_.items[position_++];
            return true;
        }
        return next_other(machine, value);
    }

private:
    [[nodiscard]] bool next_other(Machine& machine, Value& value);
    [[nodiscard]] bool next_of_dict(Machine& machine, Value& value);

    Value over_{};
    std::int64_t position_{0};
};

[[nodiscard]] bool is_iterable(Value const& value) noexcept;
/// Python's `len`; -1 for what has none.
[[nodiscard]] std::int64_t length_of(Value const& value);

/// The variable `loop`.
struct LoopData {
    Machine* machine{nullptr};
    Value iterable{};
    Walk walk{};
    ForNode const* node{nullptr};
    Activation* activation{nullptr};
    std::int64_t index0{-1};
    std::int64_t depth0{0};
    std::int64_t known_length{-1};
    Value before{};
    Value current{};
    /// What was looked at ahead of its time; missing if nothing was.
    Value after{};
    Value changed{};
    bool ended{false};
    /// What is left has passed the test of the loop already.
    bool tested{false};

    /// False at the end.
    [[nodiscard]] bool advance();
    /// The next item without going there; missing if there is none.
    [[nodiscard]] Value peek();
    [[nodiscard]] std::int64_t length();

private:
    [[nodiscard]] bool pull(Value& value);
};

}  // namespace tinkxx::text::jinja
