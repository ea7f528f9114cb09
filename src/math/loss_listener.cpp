#include "math/loss_listener.hpp"

namespace tinkxx::math {
namespace {

thread_local LossListener* innermost = nullptr;

}  // namespace

LossListener::LossListener() noexcept : outer_{std::exchange(innermost, this)} {}

LossListener::~LossListener() { innermost = outer_; }

LossListener* LossListener::here() noexcept { return innermost; }

}  // namespace tinkxx::math
