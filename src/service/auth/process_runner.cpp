#include "service/auth/process_runner.hpp"

#include "base/common/descriptor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

extern char** environ;

namespace tinkxx::service {

namespace {

/// More than any credential has.
constexpr std::size_t most_output = std::size_t{64} * 1024;

std::string error_text(int code) { return std::generic_category().message(code); }

/// One command. Its thread waits for it; the loop may kill it at any time.
///
/// The mutex guards `reaped`: as long as the process was not waited for, its number and that of
/// its group belong to it, so that a kill cannot hit a stranger.
class Run {
public:
    /// An error text, or nothing.
    std::string start(std::string const& command) {
        std::array<int, 2> ends{-1, -1};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) return "pipe: " + error_text(errno);
        output_ = base::Descriptor{ends[0]};
        base::Descriptor const theirs{ends[1]};
        wake_ = base::Descriptor{::eventfd(0, EFD_CLOEXEC)};
        if (wake_.get() < 0) return "eventfd: " + error_text(errno);

        posix_spawn_file_actions_t files;
        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&files, theirs.get(), STDOUT_FILENO);
        posix_spawnattr_t attributes;
        posix_spawnattr_init(&attributes);
        sigset_t signals;
        sigemptyset(&signals);
        posix_spawnattr_setsigmask(&attributes, &signals);  // our threads block most
        sigfillset(&signals);
        posix_spawnattr_setsigdefault(&attributes, &signals);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setflags(
            &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        std::string shell = "sh";
        std::string option = "-c";
        std::string text = command;
        std::array<char*, 4> arguments{shell.data(), option.data(), text.data(), nullptr};
        int const failed =
            ::posix_spawn(&process_, "/bin/sh", &files, &attributes, arguments.data(), environ);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&files);
        return failed != 0 ? "/bin/sh: " + error_text(failed) : std::string{};
    }

    /// On the thread of this run: reads until the end, then waits for it.
    ProcessOutcome wait() {
        ProcessOutcome outcome;
        bool const overflow = !read(outcome.output);
        if (overflow) kill();
        siginfo_t info{};
        // Without reaping: until then `kill` may still be needed.
        while (::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOWAIT) != 0 &&
               errno == EINTR) {
        }
        std::scoped_lock const lock{mutex_};
        int status = 0;
        while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
        }
        reaped_ = true;
        if (overflow) {
            outcome.end = ProcessOutcome::End::too_talkative;
        } else if (WIFSIGNALED(status)) {
            outcome.end = ProcessOutcome::End::signalled;
            outcome.code = WTERMSIG(status);
        } else {
            outcome.code = WEXITSTATUS(status);
        }
        return outcome;
    }

    void kill() noexcept {
        {
            std::scoped_lock const lock{mutex_};
            if (!reaped_) ::kill(-process_, SIGKILL);
        }
        std::uint64_t const one = 1;
        [[maybe_unused]] auto const written = ::write(wake_.get(), &one, sizeof one);
    }

private:
    /// False if it says too much.
    bool read(std::string& out) {
        std::array<char, 4096> buffer{};
        for (;;) {
            std::array<pollfd, 2> watched{{{.fd = output_.get(), .events = POLLIN, .revents = 0},
                                           {.fd = wake_.get(), .events = POLLIN, .revents = 0}}};
            if (::poll(watched.data(), watched.size(), -1) < 0 && errno == EINTR) continue;
            if (watched[1].revents != 0) return true;  // killed: whatever holds the pipe
            auto const got = ::read(output_.get(), buffer.data(), buffer.size());
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return true;
            out.append(buffer.data(), static_cast<std::size_t>(got));
            if (out.size() > most_output) return false;
        }
    }

    base::Descriptor output_{};
    base::Descriptor wake_{};
    pid_t process_{-1};
    std::mutex mutex_{};
    bool reaped_{false};
};

class ShellRunner final : public ProcessRunner, public std::enable_shared_from_this<ShellRunner> {
public:
    explicit ShellRunner(std::shared_ptr<detail::RuntimeCore> runtime) noexcept
        : runtime_{std::move(runtime)} {}

    ~ShellRunner() override {
        for (auto& [number, entry] : entries_) {
            if (entry.run) entry.run->kill();
            if (entry.thread.joinable()) entry.thread.join();
        }
    }

    std::uint64_t start(std::string const& command, ProcessListener& listener) override {
        auto const number = ++last_;
        auto run = std::make_shared<Run>();
        auto& entry = entries_[number];
        entry.listener = &listener;
        if (auto why = run->start(command); !why.empty()) {
            post({.end = ProcessOutcome::End::not_started, .why = std::move(why)}, number);
            return number;
        }
        entry.run = run;
        entry.thread = in_background([this, run, number] { post(run->wait(), number); });
        return number;
    }

    void kill(std::uint64_t number) noexcept override {
        auto const found = entries_.find(number);
        if (found == entries_.end()) return;
        found->second.listener = nullptr;
        if (found->second.run) found->second.run->kill();  // its thread ends, and says so
    }

private:
    struct Entry {
        ProcessListener* listener{nullptr};
        std::shared_ptr<Run> run{};
        std::thread thread{};
    };

    /// A thread that takes no signals: they belong to the program's own threads.
    template <class Fn>
    static std::thread in_background(Fn fn) {
        sigset_t all;
        sigset_t before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        std::thread thread{[fn = std::move(fn)] {
            pthread_setname_np(pthread_self(), "tinkxx-command");
            fn();
        }};
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        return thread;
    }

    // Also on the threads of runs, which the destructor waits for.
    void post(ProcessOutcome outcome, std::uint64_t number) {
        runtime_->scheduler().post(
            [weak = weak_from_this(), outcome = std::move(outcome), number]() mutable {
                if (auto const self = weak.lock()) self->ended(number, std::move(outcome));
            });
    }

    void ended(std::uint64_t number, ProcessOutcome outcome) {
        auto const found = entries_.find(number);
        if (found == entries_.end()) return;
        auto* const listener = found->second.listener;
        if (found->second.thread.joinable()) found->second.thread.join();
        entries_.erase(found);
        if (listener != nullptr) listener->on_process_end(std::move(outcome));
    }

    std::shared_ptr<detail::RuntimeCore> const runtime_;
    std::map<std::uint64_t, Entry> entries_{};
    std::uint64_t last_{0};
};

}  // namespace

std::shared_ptr<ProcessRunner> shell_runner(std::shared_ptr<detail::RuntimeCore> runtime) {
    return std::make_shared<ShellRunner>(std::move(runtime));
}

}  // namespace tinkxx::service
