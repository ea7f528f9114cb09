#include "commands/server/limits.hpp"

#include <tinkxx/error.hpp>

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <thread>
#include <utility>
#include <vector>

namespace tinkxx::cli {
namespace {

/// The database, the models and the loop take a dozen. The rest is for connections.
constexpr std::size_t least_files = 48;
/// For the program, the stacks of its threads and the smallest model. Larger models need more.
constexpr std::uint64_t least_memory = std::uint64_t{256} << 20U;
/// The journal of the database alone grows to 16 MiB, and a checkpoint may be larger.
constexpr std::uint64_t least_file_size = std::uint64_t{64} << 20U;
/// Those of every server: signals, loop, callbacks, store, engine; and some to spare.
constexpr unsigned other_threads = 8;

bool limited(rlimit const& limit) { return limit.rlim_cur != RLIM_INFINITY; }

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20U) + " MiB"; }

[[noreturn]] void refuse(std::string const& what) {
    Error{{.kind = ErrorKind::validation, .message = "serve: " + what}}.raise();
}

void allow_many_files() {
    // A connection is a file, and the usual limit of 1024 is for other programs.
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    // What a parent left open counts too, so the limit alone does not say how many there are.
    std::vector<int> opened;
    while (opened.size() < least_files) {
        int const one = ::open("/", O_PATH | O_CLOEXEC);
        if (one < 0) break;
        opened.push_back(one);
    }
    int const code = errno;
    for (int const one : opened) ::close(one);
    if (opened.size() == least_files) return;
    if (code != EMFILE) throw std::system_error{code, std::generic_category(), "open files"};
    ::getrlimit(RLIMIT_NOFILE, &files);
    refuse("the limit of open files is " + std::to_string(files.rlim_cur) + ", of which " +
           std::to_string(opened.size()) + " are left, and a server needs " +
           std::to_string(least_files) + "; raise the limit (ulimit -n 1024)");
}

void require_threads(unsigned count) {
    std::latch all{1};
    std::vector<std::thread> threads;
    auto const finish = [&] {
        all.count_down();
        for (auto& thread : threads) thread.join();
    };
    try {
        threads.reserve(count);
        for (unsigned i = 0; i < count; ++i) threads.emplace_back([&all] { all.wait(); });
    } catch (...) {
        finish();
        throw;
    }
    finish();
}

struct Shortage {
    int code{0};
    std::string_view way_out{};
};

constexpr std::string_view more_memory =
    "raise the limit of memory (ulimit -v), or end other programs";

std::string way_out_of(int code) {
    if (code == EAGAIN) {
        rlimit memory{};
        bool const small = ::getrlimit(RLIMIT_AS, &memory) == 0 && limited(memory);
        return std::string{"raise the limit of processes and threads (ulimit -u"} +
               (small ? ") or of memory, which their stacks take (ulimit -v)"
                      : ", or that of the container)");
    }
    for (auto const& [one, way_out] :
         {Shortage{EMFILE, "raise the limit of open files (ulimit -n)"},
          Shortage{ENFILE, "close other programs; the system has no more open files to give"},
          Shortage{ENOMEM, more_memory},
          Shortage{EFBIG, "raise the limit of the size of files (ulimit -f)"},
          Shortage{ENOSPC, "free space on the disk, or choose a folder on another one (--home)"},
          Shortage{EDQUOT,
                   "free space within your quota, or choose a folder elsewhere (--home)"}}) {
        if (one == code) return std::string{way_out};
    }
    return {};
}

}  // namespace

void prepare_limits(unsigned computing) {
    // A file that grows beyond the limit is to fail the one save, and not to end the server.
    ::signal(SIGXFSZ, SIG_IGN);
    allow_many_files();
    rlimit limit{};
    if (::getrlimit(RLIMIT_AS, &limit) == 0 && limited(limit) && limit.rlim_cur < least_memory) {
        refuse("the limit of memory is " + mebibytes(limit.rlim_cur) + ", and a server needs " +
               mebibytes(least_memory) + " for the smallest model; raise the limit (ulimit -v)");
    }
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limited(limit) &&
        limit.rlim_cur < least_file_size) {
        refuse("files may have " + std::to_string(limit.rlim_cur >> 10U) +
               " KiB, and the database needs " + mebibytes(least_file_size) +
               "; raise the limit of the size of files (ulimit -f)");
    }
    // The server makes its threads on its loop, which cannot tell anybody that one is missing.
    require_threads(other_threads + (computing != 0
                                         ? computing
                                         : std::max(1U, std::thread::hardware_concurrency())));
}

std::string way_out_of(std::string_view reason) {
    for (int const code : {EMFILE, ENFILE, ENOMEM, EFBIG, ENOSPC, EDQUOT}) {
        if (reason.find(std::generic_category().message(code)) == std::string_view::npos) continue;
        return way_out_of(code);
    }
    return {};
}

Trouble trouble_of(std::system_error const& error) {
    auto const code = error.code().value();
    bool const threads = code == EAGAIN;
    auto way_out = way_out_of(code);
    return {.headline = "the server cannot start",
            .reason = threads ? std::string{"serve: the system gives no more threads ("} +
                                    error.what() + ")"
                              : std::string{"serve: "} + error.what(),
            .way_out = way_out.empty() ? "tinkxx serve --help" : std::move(way_out)};
}

Trouble trouble_of_memory() {
    return {.headline = "the server cannot start",
            .reason = "serve: there is not enough memory",
            .way_out = std::string{more_memory}};
}

void return_large_memory() noexcept {
#ifdef __GLIBC__
    // By itself the library raises the first limit to 32 MiB once such a block was freed. From then
    // on the pieces of bodies lie among small blocks, and their pages stay in use.
    ::mallopt(M_MMAP_THRESHOLD, 1 << 20);
    ::mallopt(M_TRIM_THRESHOLD, 4 << 20);
#endif
}

}  // namespace tinkxx::cli
