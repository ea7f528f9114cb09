#pragma once

#include <tinkxx/scheduler.hpp>

namespace tinkxx::service {

/// A timer that calls a member of its owner, for owners that wait for more than one thing.
template <class Owner>
class Alarm final : public Timer {
public:
    Alarm(Owner& owner, void (Owner::*member)()) noexcept : owner_{&owner}, member_{member} {}
    void on_time() override { (owner_->*member_)(); }

private:
    Owner* owner_;
    void (Owner::*member_)();
};

}  // namespace tinkxx::service
