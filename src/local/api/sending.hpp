#pragma once

#include <tinkxx/result.hpp>

#include "local/api/handler.hpp"
#include "local/store/worker.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace tinkxx::local {

/// Sends a body in pieces, as fast as the other side takes them. Loop thread.
class Sending : public std::enable_shared_from_this<Sending> {
public:
    explicit Sending(std::shared_ptr<Answer> answer) : answer_{std::move(answer)} {}
    virtual ~Sending() = default;
    Sending(Sending const&) = delete;
    Sending& operator=(Sending const&) = delete;

    /// Goes on by itself until all is sent, or the other side is gone.
    void pump();
    /// As above; pieces are made by the worker, which must live as long as `alive` says.
    void pump_from(Worker& worker, std::weak_ptr<bool> alive);

protected:
    /// The next piece; none at the end. On the worker, if there is one.
    [[nodiscard]] virtual Result<std::string> next() = 0;

private:
    /// Whether there is more to come.
    bool deliver(Result<std::string> piece);
    void watch();

    /// None once all is sent, or nobody reads.
    std::shared_ptr<Answer> answer_;
    bool watched_{false};
};

/// Answers with a body that is not copied as a whole.
void send_shared(std::shared_ptr<Answer> const& answer, std::string_view content_type,
                 std::shared_ptr<std::string const> const& body);

}  // namespace tinkxx::local
