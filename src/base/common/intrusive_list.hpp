#pragma once

#include <cstddef>
#include <utility>

namespace tinkxx::base {

/// The links of an object that is in at most one `IntrusiveList` at a time.
template <class T>
struct ListLinks {
    T* previous{};  ///< the first one's is itself, so that null means in no list
    T* next{};

    [[nodiscard]] bool linked() const noexcept { return previous != nullptr; }
};

/// A doubly linked list through a `ListLinks<T>` member of its elements: nothing is allocated
/// and any element leaves in constant time. It owns nothing.
template <class T, ListLinks<T> T::*Links>
class IntrusiveList {
public:
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] T* front() const noexcept { return first_; }
    [[nodiscard]] T* back() const noexcept { return last_; }

    void push_back(T& item) noexcept {
        item.*Links = {.previous = last_ != nullptr ? last_ : &item, .next = nullptr};
        (last_ != nullptr ? (last_->*Links).next : first_) = &item;
        last_ = &item;
        ++size_;
    }
    void push_front(T& item) noexcept {
        item.*Links = {.previous = &item, .next = first_};
        (first_ != nullptr ? (first_->*Links).previous : last_) = &item;
        first_ = &item;
        ++size_;
    }
    void erase(T& item) noexcept {
        auto const links = std::exchange(item.*Links, {});
        T* const before = links.previous != &item ? links.previous : nullptr;
        (before != nullptr ? (before->*Links).next : first_) = links.next;
        if (links.next != nullptr) {
            (links.next->*Links).previous = before != nullptr ? before : links.next;
        } else {
            last_ = before;
        }
        --size_;
    }
    T* pop_front() noexcept {
        T* const item = first_;
        if (item != nullptr) erase(*item);
        return item;
    }

private:
    T* first_{};
    T* last_{};
    std::size_t size_{0};
};

}  // namespace tinkxx::base
