#include "text/jinja/convert/text_of.hpp"
#include "text/jinja/filters/filters.hpp"

#include <algorithm>
#include <string>

// Filters that give a generator: nothing happens before somebody iterates over it.

namespace tinkxx::text::jinja {
namespace {

Arguments from_second(Arguments arguments, std::uint32_t skipped) noexcept {
    arguments.positional += skipped;
    arguments.count -= skipped;
    return arguments;
}

std::string_view name_of(Value const& name, std::string_view what) {
    if (!name.is_string()) {
        fail_value("No " + std::string{what} + " named " + repr_of(name) + " found.");
    }
    return name.view();
}

/// What these have in common: the operand, which an empty one of ends at once.
class LazyFilter : public Iteration {
protected:
    LazyFilter(Value const& operand, Arguments const& arguments)
        : operand_{operand}, arguments_{arguments} {}
    LazyFilter(LazyFilter const&) = default;
    LazyFilter& operator=(LazyFilter const&) = default;
    ~LazyFilter() = default;

    [[nodiscard]] bool pull(Machine& machine, Value& value) {
        if (!started_) {
            started_ = true;
            if (!is_true(operand_)) {
                ended_ = true;
            } else {
                start();
                walk_ = Walk{operand_};
            }
        }
        if (ended_ || !walk_.next(machine, value)) return false;
        machine.charge(1);
        return true;
    }

    /// Looks at the arguments; nobody does so if there is nothing to iterate over.
    virtual void start() = 0;

    Value operand_;
    Arguments arguments_;

private:
    Walk walk_{};
    bool started_{false};
    bool ended_{false};
};

class MapIteration final : public LazyFilter {
public:
    MapIteration(Value const& operand, Arguments const& arguments)
        : LazyFilter{operand, arguments} {}

    bool next(Machine& machine, Value& value) override {
        Value item;
        if (!pull(machine, item)) return false;
        if (by_attribute_) {
            value = AttributePath{attribute_}.get(machine, item, default_);
        } else {
            value = machine.filter(which_, name_, item, from_second(arguments_, 1));
        }
        return true;
    }

private:
    void start() override {
        auto const* const attribute = arguments_.keyword("attribute");
        if (arguments_.count == 0 && attribute != nullptr) {
            by_attribute_ = true;
            attribute_ = *attribute;
            for (std::uint32_t i = 0; i < arguments_.keyword_count; ++i) {
                auto const keyword = arguments_.keywords[i].name.view();
                if (keyword == "default") {
                    default_ = arguments_.keywords[i].value;
                } else if (keyword != "attribute") {
                    fail_value("Unexpected keyword argument '" + std::string{keyword} + "'");
                }
            }
            return;
        }
        if (arguments_.count == 0) fail_value("map requires a filter argument");
        name_ = name_of(arguments_.positional[0], "filter");
        which_ = filter_of(name_);
    }

    bool by_attribute_{false};
    Value attribute_{};
    Value default_{};
    std::string_view name_{};
    Filter which_{};
};

class SelectIteration final : public LazyFilter {
public:
    SelectIteration(Value const& operand, Arguments const& arguments, bool wanted,
                    bool by_attribute)
        : LazyFilter{operand, arguments}, wanted_{wanted}, by_attribute_{by_attribute} {}

    bool next(Machine& machine, Value& value) override {
        while (pull(machine, value)) {
            auto const looked_at =
                by_attribute_ ? AttributePath{attribute_}.get(machine, value, missing_value())
                              : value;
            bool const passes =
                has_test_ ? machine.test(which_, name_, looked_at, rest_) : is_true(looked_at);
            if (passes == wanted_) return true;
        }
        return false;
    }

private:
    void start() override {
        std::uint32_t taken = 0;
        if (by_attribute_) {
            if (arguments_.count == 0) fail_value("Missing parameter for attribute name");
            attribute_ = arguments_.positional[taken++];
        }
        has_test_ = arguments_.count > taken;
        if (!has_test_) return;
        name_ = name_of(arguments_.positional[taken++], "test");
        which_ = test_of(name_);
        rest_ = from_second(arguments_, taken);
    }

    bool wanted_;
    bool by_attribute_;
    bool has_test_{false};
    Value attribute_{};
    std::string_view name_{};
    Test which_{};
    Arguments rest_{};
};

class ItemsIteration final : public Iteration {
public:
    explicit ItemsIteration(Value const& operand) : operand_{operand} {}

    bool next(Machine& machine, Value& value) override {
        if (operand_.is_undefined()) return false;
        if (!operand_.is(Kind::dict)) fail_type("Can only get item pairs from a mapping.");
        if (at_ == operand_.dict->size) return false;
        auto const& entry = operand_.dict->entries[at_++];
        value = machine.pair(entry.key, entry.value);
        return true;
    }

private:
    Value operand_;
    std::uint32_t at_{0};
};

class UniqueIteration final : public Iteration {
public:
    UniqueIteration(Value const& operand, bool sensitive, Value const& attribute)
        : operand_{operand}, sensitive_{sensitive}, attribute_{attribute} {}

    bool next(Machine& machine, Value& value) override {
        if (!started_) {
            started_ = true;
            walk_ = Walk{operand_};
        }
        while (walk_.next(machine, value)) {
            auto key = AttributePath{attribute_}.get(machine, value, missing_value());
            if (!sensitive_) key = lower_key(machine, key);
            if (!is_hashable(key)) {
                fail_type("unhashable type: '" + std::string{type_name(key)} + "'");
            }
            if (add(machine, key)) return true;
        }
        return false;
    }

private:
    struct Seen {
        Value key;
        Seen* next;
    };

    bool add(Machine& machine, Value const& key) {
        for (auto const* one = seen_; one != nullptr; one = one->next) {
            machine.charge(1);
            if (equal(one->key, key)) return false;
        }
        seen_ = machine.arena().make<Seen>(key, seen_);
        return true;
    }

    Value operand_;
    bool sensitive_;
    Value attribute_;
    bool started_{false};
    Walk walk_{};
    Seen* seen_{nullptr};
};

/// The lists that `batch` and `slice` cut a sequence into.
class PiecesIteration final : public Iteration {
public:
    PiecesIteration(Filter which, Value const& operand, std::int64_t count, Value const& fill)
        : which_{which}, operand_{operand}, count_{count}, fill_{fill} {}

    bool next(Machine& machine, Value& value) override {
        if (!started_) {
            started_ = true;
            items_ = machine.list(machine.items_of(operand_));
            if (count_ == 0 && which_ == Filter::slice) {
                fail_value("integer division or modulo by zero");
            }
        }
        return which_ == Filter::batch ? next_batch(machine, value) : next_slice(machine, value);
    }

private:
    [[nodiscard]] bool fills() const noexcept { return !fill_.is_missing() && !fill_.is_none(); }

    bool next_batch(Machine& machine, Value& value) {
        if (at_ >= items_.size) return false;
        auto const size = count_ <= 0 ? 1 : count_;
        std::vector<Value> piece;
        while (at_ < items_.size && static_cast<std::int64_t>(piece.size()) < size) {
            piece.push_back(items_.items[at_++]);
        }
        if (fills()) {
            machine.charge(static_cast<std::size_t>(std::max<std::int64_t>(count_, 0)));
            while (static_cast<std::int64_t>(piece.size()) < count_) piece.push_back(fill_);
        }
        value = machine.list(piece);
        return true;
    }

    bool next_slice(Machine& machine, Value& value) {
        if (piece_ >= count_) return false;
        machine.charge(1);
        auto const each = items_.size / count_;
        auto const with_extra = items_.size % count_;
        auto const size = each + (piece_ < with_extra ? 1 : 0);
        std::vector<Value> piece{items_.items + at_, items_.items + at_ + size};
        at_ += static_cast<std::uint32_t>(size);
        if (fills() && piece_ >= with_extra) piece.push_back(fill_);
        ++piece_;
        value = machine.list(piece);
        return true;
    }

    Filter which_;
    Value operand_;
    std::int64_t count_;
    Value fill_;
    bool started_{false};
    Value items_{};
    std::uint32_t at_{0};
    std::int64_t piece_{0};
};

Value pieces(Machine& machine, Filter which, Value const& operand, Arguments const& arguments) {
    static constexpr Signature batch{"batch", 1, {"linecount", "fill_with"}};
    static constexpr Signature slice{"slice", 1, {"slices", "fill_with"}};
    auto const bound = bind(which == Filter::batch ? batch : slice, arguments);
    if (!bound[0].is_integer()) {
        fail_type("'" + std::string{type_name(bound[0])} +
                  "' object cannot be interpreted as an integer");
    }
    return machine.generator(
        machine.arena().make<PiecesIteration>(which, operand, bound[0].as_integer(), bound[1]));
}

}  // namespace

Value lazy_filter(Machine& machine, Filter which, Value const& operand,
                  Arguments const& arguments) {
    auto& arena = machine.arena();
    switch (which) {
        case Filter::map:
            return machine.generator(arena.make<MapIteration>(operand, arguments));
        case Filter::select:
        case Filter::reject:
        case Filter::selectattr:
        case Filter::rejectattr:
            return machine.generator(arena.make<SelectIteration>(
                operand, arguments, which == Filter::select || which == Filter::selectattr,
                which == Filter::selectattr || which == Filter::rejectattr));
        case Filter::items:
            return machine.generator(arena.make<ItemsIteration>(operand));
        case Filter::unique: {
            static constexpr Signature signature{"unique", 0, {"case_sensitive", "attribute"}};
            auto const bound = bind(signature, arguments);
            bool const sensitive = !bound[0].is_missing() && is_true(bound[0]);
            return machine.generator(arena.make<UniqueIteration>(operand, sensitive, bound[1]));
        }
        case Filter::batch:
        case Filter::slice:
            return pieces(machine, which, operand, arguments);
        default:
            return missing_value();
    }
}

}  // namespace tinkxx::text::jinja
