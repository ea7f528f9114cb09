#pragma once

#include "net/address/ip_address.hpp"

#include <boost/intrusive/list.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tinkxx::base {
class EventLoop;
}

namespace tinkxx::net {

/// Looks host names up off the loop. Those who ask for a name while it is being looked up share
/// the answer: a pool that opens many connections at once asks once.
///
/// Loop thread only. Destroying it does not wait for look-ups under way, which the system cannot
/// break off and which may take long: they run out on threads of their own, which touch nothing
/// of ours any more.
class Resolver {
public:
    struct Answer {
        std::vector<IpAddress> addresses{};
        std::string error{};  ///< why there are none
        /// Those who were asked know of no such host; they may not have been reached otherwise.
        bool unknown{false};
        bool no_descriptor{false};  ///< for want of a file descriptor
    };
    /// One who asked. Destroying it withdraws the question.
    class Asker : public boost::intrusive::list_base_hook<
                      boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
    public:
        /// Never called inside `look_up`; may destroy anything.
        virtual void on_answer(Answer const& answer) = 0;

    protected:
        ~Asker() = default;
    };

    /// Asks for one name and waits; on any thread.
    using Ask = std::function<Answer(std::string const& host)>;

    /// `ask` stands in for the system, in tests.
    explicit Resolver(base::EventLoop& loop, Ask ask = {});
    ~Resolver();
    Resolver(Resolver const&) = delete;
    Resolver& operator=(Resolver const&) = delete;

    void look_up(std::string const& host, Asker& asker);

private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace tinkxx::net
