#include "support/sockets/processes.hpp"

#include "support/sockets/sockets.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

extern char** environ;

namespace tinkxx::test {
namespace {

constexpr char const* echo_module = "ngx_http_echo_module.so";

std::string find_echo_module() {
    for (char const* folder : {"/usr/lib/nginx/modules/", "/usr/lib64/nginx/modules/"}) {
        if (std::filesystem::exists(std::string{folder} + echo_module)) {
            return std::string{folder} + echo_module;
        }
    }
    return {};
}

/// Waits until somebody listens there. There is no event to wait for: the program is foreign.
void wait_for_listener(std::uint16_t port, std::string const& log_file) {
    for (int attempt = 0; attempt < 1000; ++attempt) {
        if (connect_to_loopback(Family::ipv4, port)) return;
        ::poll(nullptr, 0, 10);
    }
    throw std::runtime_error{"server did not start:\n" + read_file(log_file)};
}

class Nginx final : public ForeignServer {
public:
    explicit Nginx(ForeignServerOptions options)
        : options_{std::move(options)}, port_{free_port()} {
        auto const tls = !options_.certificate.certificate_file.empty();
        std::ostringstream text;
        text << "load_module " << find_echo_module() << ";\n"
             << "daemon off;\nmaster_process off;\n"
             << "pid " << (folder_ / "pid") << ";\n"
             << "error_log " << (folder_ / "error.log") << " crit;\n"
             << "worker_rlimit_nofile 16384;\n"
             << "events { worker_connections 12000; }\nhttp {\n"
             << "log_format ids '$http_x_request_id';\n"
             << "access_log " << (options_.log_ids ? (folder_ / "ids.log") + " ids" : "off")
             << ";\n";
        for (char const* kind : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
            text << kind << "_temp_path " << (folder_ / kind) << ";\n";
        }
        text << "client_max_body_size 64m; client_body_buffer_size 1m;\n"
             << "keepalive_requests 100000000; keepalive_timeout 3600;\n"
             << "http2_max_concurrent_streams " << options_.max_streams << ";\n"
             << "server {\n";
        if (tls) {
            text << "listen 127.0.0.1:" << port_ << " ssl http2 backlog=4096;\n"
                 << "ssl_certificate " << options_.certificate.certificate_file << ";\n"
                 << "ssl_certificate_key " << options_.certificate.key_file << ";\n"
                 << "ssl_session_cache shared:tls:1m;\n";
        } else {
            text << "listen 127.0.0.1:" << port_ << " backlog=4096;\n";
        }
        text << "location / {\n"
             << "default_type application/octet-stream;\necho_read_request_body;\n";
        if (options_.answer_bytes == 0) {
            text << "echo_request_body;\n";
        } else {
            text << "echo -n '" << std::string(options_.answer_bytes, 'x') << "';\n";
        }
        text << "}\n}\n}\n";
        write_file(folder_ / "nginx.conf", text.str());
    }

    void kill() override { process_.reset(); }

    void start() override {
        auto command = options_.prefix;
        for (auto const& word : {find_program("nginx"), std::string{"-p"}, folder_.path().string(),
                                 std::string{"-c"}, folder_ / "nginx.conf"}) {
            command.push_back(word);
        }
        process_.emplace(std::move(command), folder_ / "out.log");
        wait_for_listener(port_, folder_ / "out.log");
    }

    std::string url() const override {
        return (options_.certificate.certificate_file.empty() ? "http://127.0.0.1:"
                                                              : "https://127.0.0.1:") +
               std::to_string(port_);
    }

    std::vector<std::string> seen_ids() const override {
        std::vector<std::string> ids;
        std::ifstream file{folder_ / "ids.log"};
        for (std::string line; std::getline(file, line);) {
            if (line != "-") ids.push_back(line);
        }
        return ids;
    }

private:
    ForeignServerOptions options_;
    TemporaryFolder folder_;
    std::uint16_t port_;
    std::optional<Process> process_;
};

class Nghttpd final : public ForeignServer {
public:
    explicit Nghttpd(ForeignServerOptions options)
        : options_{std::move(options)}, port_{free_port()} {
        std::filesystem::create_directory(folder_ / "root");
        write_file(folder_ / "root/index.html", std::string(options_.answer_bytes, 'x'));
    }

    void kill() override { process_.reset(); }

    void start() override {
        auto command = options_.prefix;
        command.push_back(find_program("nghttpd"));
        command.emplace_back("--address=127.0.0.1");
        command.push_back("--max-concurrent-streams=" + std::to_string(options_.max_streams));
        command.push_back("--htdocs=" + (folder_ / "root"));
        command.emplace_back("--window-bits=20");
        command.emplace_back("--connection-window-bits=30");
        if (options_.answer_bytes == 0) command.emplace_back("--echo-upload");
        if (options_.log_ids) command.emplace_back("--verbose");
        if (options_.certificate.certificate_file.empty()) {
            command.emplace_back("--no-tls");
            command.push_back(std::to_string(port_));
        } else {
            command.push_back(std::to_string(port_));
            command.push_back(options_.certificate.key_file);
            command.push_back(options_.certificate.certificate_file);
        }
        process_.emplace(std::move(command), folder_ / "out.log");
        wait_for_listener(port_, folder_ / "out.log");
    }

    std::string url() const override {
        return (options_.certificate.certificate_file.empty() ? "http://127.0.0.1:"
                                                              : "https://127.0.0.1:") +
               std::to_string(port_);
    }

    std::vector<std::string> seen_ids() const override {
        // The log shows requests and answers alike; only lines of what came count.
        std::vector<std::string> ids;
        std::ifstream file{folder_ / "out.log"};
        for (std::string line; std::getline(file, line);) {
            auto const at = line.find(" x-request-id: ");
            if (at == std::string::npos || line.find("] recv (stream_id=") == std::string::npos) {
                continue;
            }
            ids.push_back(line.substr(at + std::strlen(" x-request-id: ")));
        }
        return ids;
    }

private:
    ForeignServerOptions options_;
    TemporaryFolder folder_;
    std::uint16_t port_;
    std::optional<Process> process_;
};

}  // namespace

void write_file(std::string const& path, std::string const& content) {
    std::ofstream file{path, std::ios::binary};
    file << content;
    if (!file.flush()) throw std::runtime_error{"cannot write " + path};
}

std::string read_file(std::string const& path) {
    std::ifstream file{path, std::ios::binary};
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::string find_program(std::string const& name) {
    auto const* path = std::getenv("PATH");
    std::istringstream folders{std::string{path == nullptr ? "" : path} +
                               ":/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"};
    for (std::string folder; std::getline(folders, folder, ':');) {
        auto candidate = folder + "/" + name;
        if (!folder.empty() && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    return {};
}

Process::Process(std::vector<std::string> command, std::string const& log_file) {
    std::vector<char*> words;
    for (auto& word : command) words.push_back(word.data());
    words.push_back(nullptr);

    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                     0644);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    // A group of its own, so that `kill` reaches what it starts in turn.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    auto const error = ::posix_spawnp(&id_, words[0], &files, &attributes, words.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (error != 0) {
        throw std::system_error{error, std::generic_category(), "cannot start " + command[0]};
    }
}

Process::~Process() { kill(); }

void Process::kill() noexcept {
    if (id_ < 0) return;
    ::kill(-id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
    id_ = -1;
}

std::string nginx_missing() {
    if (find_program("nginx").empty()) return "nginx is not installed";
    if (find_echo_module().empty()) return "libnginx-mod-http-echo is not installed";
    return {};
}

std::string nghttpd_missing() {
    return find_program("nghttpd").empty() ? "nghttpd (nghttp2-server) is not installed" : "";
}

std::unique_ptr<ForeignServer> make_nginx(ForeignServerOptions options) {
    return std::make_unique<Nginx>(std::move(options));
}

std::unique_ptr<ForeignServer> make_nghttpd(ForeignServerOptions options) {
    return std::make_unique<Nghttpd>(std::move(options));
}

}  // namespace tinkxx::test
