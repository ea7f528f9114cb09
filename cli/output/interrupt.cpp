#include "output/interrupt.hpp"

#include "output/terminal.hpp"

#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string_view>

namespace tinkxx::cli {
namespace {

termios shown{};
/// The terminal whose echo is off; -1: none.
std::atomic<int> hidden{-1};
static_assert(std::atomic<int>::is_always_lock_free);

void show_again() noexcept {
    auto const file = hidden.exchange(-1);
    if (file >= 0) ::tcsetattr(file, TCSANOW, &shown);
}

/// Calls only what may be called in a signal handler.
void on_interrupt(int /*signal*/) {
    show_again();
    constexpr std::string_view text = "\ninterrupted\n";
    if (::isatty(STDERR_FILENO) == 1) (void)!::write(STDERR_FILENO, text.data(), text.size());
    ::_exit(static_cast<int>(Exit::interrupted));
}

}  // namespace

void end_by_interrupt() {
    struct sigaction action {};
    if (::sigaction(SIGINT, nullptr, &action) != 0) return;
    // A job in the background is not to be ended by a Ctrl-C that is meant for others.
    if (action.sa_handler == SIG_IGN) return;
    action = {};
    action.sa_handler = &on_interrupt;
    sigemptyset(&action.sa_mask);
    ::sigaction(SIGINT, &action, nullptr);
}

HiddenInput::HiddenInput(int file) {
    termios now{};
    if (::tcgetattr(file, &now) != 0) return;
    shown = now;
    hidden = file;
    now.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    ::tcsetattr(file, TCSAFLUSH, &now);
}

HiddenInput::~HiddenInput() { show_again(); }

}  // namespace tinkxx::cli
