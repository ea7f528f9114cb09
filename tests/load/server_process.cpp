#include "load/server_process.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace tinkxx::load {

using namespace std::chrono_literals;

std::uint64_t memory_of(pid_t process, char const* which) {
    std::ifstream file{"/proc/" + std::to_string(process) + "/status"};
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with(which)) continue;
        return std::strtoull(line.c_str() + std::strlen(which) + 1, nullptr, 10) * 1024;
    }
    return 0;
}

ServerProcess::ServerProcess(std::string const& program,
                             std::vector<std::string> const& arguments) {
    std::vector<std::string> command{program,  "serve",  "--port",        "0",
                                     "--json", "--home", folder_ / "home"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    process_ = std::make_unique<test::Process>(std::move(command), log_);
    for (auto const end = std::chrono::steady_clock::now() + 30s;
         std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(10ms)) {
        std::string const head = R"({"url":")";
        auto const text = said();
        auto const at = text.find(head);
        if (at != std::string::npos && text.find('\n', at) != std::string::npos) {
            auto const begin = at + head.size();
            url_ = text.substr(begin, text.find('"', begin) - begin);
            return;
        }
        if (ended()) break;
    }
    throw std::runtime_error{program + " does not serve:\n" + said()};
}

std::map<std::string, std::uint64_t> ServerProcess::metrics() const {
    HttpClient const client{{.base_url = url_, .api_key = "tml-metrics"}};
    std::istringstream text{client.send({.path = "/metrics"}).get(60s).body};
    std::map<std::string, std::uint64_t> numbers;
    for (std::string line; std::getline(text, line);) {
        auto const blank = line.rfind(' ');
        if (line.starts_with('#') || blank == std::string::npos) continue;
        numbers[line.substr(0, blank)] = std::strtoull(line.c_str() + blank, nullptr, 10);
    }
    return numbers;
}

bool ServerProcess::ended() const {
    siginfo_t ended{};
    // It stays there for the one who kills it.
    ::waitid(P_PID, static_cast<id_t>(id()), &ended, WEXITED | WNOHANG | WNOWAIT);
    return ended.si_pid != 0;
}

int ServerProcess::end() {
    ::kill(id(), SIGTERM);
    int code = -1;
    for (auto const end = std::chrono::steady_clock::now() + 20s;
         std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(20ms)) {
        siginfo_t ended{};
        // It stays there for the one who kills it.
        ::waitid(P_PID, static_cast<id_t>(id()), &ended, WEXITED | WNOHANG | WNOWAIT);
        if (ended.si_pid == 0) continue;
        if (ended.si_code == CLD_EXITED) code = ended.si_status;
        break;
    }
    process_->kill();
    return code;
}

}  // namespace tinkxx::load
