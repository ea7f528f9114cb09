#pragma once

#include "base/common/intrusive_list.hpp"

namespace tinkxx::service {

/// Has something under way that must end when its client closes. Loop thread only.
class CloseListener {
public:
    virtual void on_closing() noexcept = 0;

protected:
    virtual ~CloseListener() = default;

private:
    friend class CloseListeners;
    base::ListLinks<CloseListener> links_{};
};

/// Those who are told of a close, each once unless it leaves before. Loop thread only.
class CloseListeners {
public:
    /// Harmless to repeat.
    void add(CloseListener& listener) noexcept {
        if (!listener.links_.linked()) list_.push_back(listener);
    }
    /// Harmless if it is not among them.
    void remove(CloseListener& listener) noexcept {
        if (listener.links_.linked()) list_.erase(listener);
    }
    void tell() noexcept {
        while (auto* const listener = list_.pop_front()) listener->on_closing();
    }

private:
    base::IntrusiveList<CloseListener, &CloseListener::links_> list_{};
};

}  // namespace tinkxx::service
