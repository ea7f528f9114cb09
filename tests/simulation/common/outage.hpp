#pragma once

#include <tinkxx/testing/fake_transport.hpp>

#include "service/common/random.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

namespace tinkxx::simulation {

/// What the clients of a service meet while nobody reaches it: a gateway that says so, or no
/// connection. None of it tells what became of requests that were accepted before.
class Outage {
public:
    /// From now on. One gateway answers all requests alike, or each of several in its own way.
    void begin(service::Random& random) {
        on_ = true;
        face_ = random.next() % (faces.size() + 1);
    }
    void end() noexcept { on_ = false; }
    [[nodiscard]] bool on() const noexcept { return on_; }

    [[nodiscard]] testing::Reply reply(service::Random& random) const {
        auto const face = face_ < faces.size() ? face_ : random.next() % faces.size();
        if (faces[face] == 0) {
            bool const connected = random.unit() < 0.5;
            return connected ? testing::failing(FailureKind::reset)
                             : testing::failing(FailureKind::connect, Seen::no);
        }
        testing::Reply made;
        made.status = faces[face];
        made.body = "the service is out of reach";
        made.delay = std::chrono::milliseconds{1 + random.next() % 200};
        return made;
    }

private:
    /// Statuses; 0 is no answer.
    static constexpr std::array faces{502, 503, 504, 0};

    bool on_{false};
    std::size_t face_{0};
};

}  // namespace tinkxx::simulation
