#include "base/runtime/own_thread.hpp"

#include <pthread.h>
#include <csignal>

#include <utility>

namespace tinkxx::base {

std::thread start_thread(char const* name, std::function<void()> body) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    for (int const fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF}) {
        sigdelset(&all, fault);
    }
    pthread_sigmask(SIG_SETMASK, &all, &before);  // a new thread inherits it
    std::thread thread;
    try {
        thread = std::thread{[name, run = std::move(body)] {
            pthread_setname_np(pthread_self(), name);
            run();
        }};
    } catch (...) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
}

}  // namespace tinkxx::base
