#pragma once

#include <tinkxx/error.hpp>
#include <tinkxx/log.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <variant>

namespace tinkxx::service {

// What follows an answer to a question that is asked until the answer is there.

/// Ask again later.
struct AskAgain {
    std::chrono::nanoseconds delay{0};
    /// What is waited for.
    std::string why{};
};
/// This is it.
template <class T>
struct Answered {
    T value{};
};
/// It will not come.
struct AskInVain {
    Error error;
};
template <class T>
using AskAction = std::variant<AskAgain, Answered<T>, AskInVain>;

}  // namespace tinkxx::service
