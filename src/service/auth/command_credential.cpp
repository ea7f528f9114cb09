#include "service/auth/command_credential.hpp"

#include "base/common/ascii.hpp"
#include "base/loop/loop_rule.hpp"

#include <algorithm>
#include <utility>

namespace tinkxx::service {

namespace {

ErrorDetails refused(ErrorKind kind, std::string value, std::string what) {
    ErrorDetails details;
    details.kind = kind;
    details.category = ErrorCategory::user;
    details.field = "credential_cmd";
    details.message =
        "the credential command (TINKER_CREDENTIAL_CMD or ClientOptions::credential_cmd) " +
        std::move(what);
    details.value = std::move(value);
    return details;
}

}  // namespace

Result<Credential> credential_of(ProcessOutcome const& outcome) {
    auto const code = std::to_string(outcome.code);
    switch (outcome.end) {
        case ProcessOutcome::End::not_started:
            return refused(ErrorKind::validation, outcome.why,
                           "could not be started: " + outcome.why);
        case ProcessOutcome::End::too_talkative:
            return refused(ErrorKind::validation, "",
                           "printed too much; it must print the credential and nothing else");
        case ProcessOutcome::End::signalled:
            return refused(ErrorKind::validation, "signal " + code, "was ended by signal " + code);
        case ProcessOutcome::End::exited:
            break;
    }
    if (outcome.code != 0) {
        return refused(ErrorKind::validation, "exit status " + code,
                       "failed with exit status " + code + "; run it by hand to see why");
    }
    auto const text = base::trim(outcome.output, base::white_space);
    if (text.empty()) {
        return refused(ErrorKind::validation, "",
                       "printed nothing; it must print the credential to its standard output");
    }
    // It becomes a header line.
    bool const fits = std::ranges::all_of(text, [](char c) {
        auto const byte = static_cast<unsigned char>(c);
        return byte > 0x20 && byte < 0x7f;
    });
    if (!fits) {
        return refused(ErrorKind::validation, "",
                       "printed more than one word; it must print the credential and nothing else");
    }
    return std::make_shared<std::string const>(text);
}

std::optional<Result<Credential>> CommandCredential::get(CredentialWaiter& waiter) {
    TINKXX_ASSERT_LOOP(*scheduler_);
    waiters_.push(waiter);
    if (run_ == 0) {
        run_ = runner_->start(command_, *this);
        until_ = scheduler_->now() + limit;
        scheduler_->arm(*this, until_, Precision::coarse);
    }
    return std::nullopt;
}

CredentialStanding CommandCredential::standing() const {
    if (run_ == 0) return {};
    return {.why = "the credential command is running", .until = until_};
}

void CommandCredential::forget(CredentialWaiter& waiter) noexcept {
    TINKXX_ASSERT_LOOP(*scheduler_);
    waiters_.forget(waiter);
    if (waiters_.empty()) kill();
}

void CommandCredential::on_process_end(ProcessOutcome outcome) {
    run_ = 0;
    scheduler_->disarm(*this);
    waiters_.tell(credential_of(outcome));
}

void CommandCredential::on_time() {
    kill();
    waiters_.tell(refused(ErrorKind::timeout, "60 s",
                          "took longer than 60 s and was ended; make it quicker, or let it ask "
                          "nothing of the user"));
}

void CommandCredential::kill() noexcept {
    if (run_ == 0) return;
    scheduler_->disarm(*this);
    runner_->kill(std::exchange(run_, 0));
}

}  // namespace tinkxx::service
