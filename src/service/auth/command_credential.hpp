#pragma once

#include <tinkxx/scheduler.hpp>

#include "service/auth/credential_queue.hpp"
#include "service/auth/process_runner.hpp"
#include "service/http/credentials.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace tinkxx::service {

/// Asks a command of the user's for a credential, anew for every request for one (R-AUTH-20);
/// requests that come while it runs share its answer. Loop thread only.
class CommandCredential final : public CredentialSource, private ProcessListener, private Timer {
public:
    static constexpr std::chrono::seconds limit{60};

    /// The scheduler outlives this.
    CommandCredential(std::string command, std::shared_ptr<ProcessRunner> runner,
                      Scheduler& scheduler) noexcept
        : command_{std::move(command)}, runner_{std::move(runner)}, scheduler_{&scheduler} {}
    ~CommandCredential() override { kill(); }

    std::optional<Result<Credential>> get(CredentialWaiter& waiter) override;
    /// The command ends with the last who waits for it.
    void forget(CredentialWaiter& waiter) noexcept override;
    CredentialStanding standing() const override;
    std::string_view identity() const noexcept override { return command_; }

    [[nodiscard]] bool running() const noexcept { return run_ != 0; }

private:
    void on_process_end(ProcessOutcome outcome) override;
    void on_time() override;
    void kill() noexcept;

    std::string const command_;
    std::shared_ptr<ProcessRunner> const runner_;
    Scheduler* scheduler_;
    CredentialQueue waiters_{};
    std::uint64_t run_{0};
    TimePoint until_{};  ///< of a run
};

/// What a command's end means (R-AUTH-20). Errors show nothing of what it printed.
[[nodiscard]] Result<Credential> credential_of(ProcessOutcome const& outcome);

}  // namespace tinkxx::service
