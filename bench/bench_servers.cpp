// The servers that `transport` measures against, on free ports of 127.0.0.1: prints their URLs
// as JSON in one line and serves until its standard input ends.
//
//   bench_servers ANSWER_BYTES
//
// "nginx" is HTTP/1.1 in the clear, "nghttpd" and "slow" are HTTP/2 with TLS. The path of a
// request to "slow" is the number of milliseconds after which it is answered, on average.
#include "support/servers/http_server.hpp"
#include "support/sockets/certificates.hpp"
#include "support/sockets/processes.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <iostream>
#include <random>
#include <string>

int main(int argc, char** argv) try {
    using namespace tinkxx::test;
    if (argc != 2) {
        std::cerr << "usage: bench_servers ANSWER_BYTES\n";
        return 2;
    }
    for (auto const& why : {nginx_missing(), nghttpd_missing()}) {
        if (why.empty()) continue;
        std::cerr << "bench_servers: " << why << "\n";
        return 1;
    }
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);

    std::string const answer(std::stoul(argv[1]), 'x');
    Certificates certificates;
    auto const certificate = certificates.issue_for_loopback();
    auto const nginx = make_nginx({.log_ids = false, .answer_bytes = answer.size()});
    nginx->start();
    auto const nghttpd = make_nghttpd({.certificate = certificate,
                                       .log_ids = false,
                                       .answer_bytes = answer.size(),
                                       .max_streams = 8192});
    nghttpd->start();
    std::mt19937 random{1};
    HttpServer slow{[&](ReceivedRequest const& request) {
                        // Evenly between nothing and twice the mean, so that answers come one by
                        // one.
                        auto const mean = std::stoll(request.target.substr(1)) * 1000;
                        std::uniform_int_distribution<long long> spread{0, 2 * mean};
                        return Reaction{.answer = {.body = answer},
                                        .delay = std::chrono::microseconds{spread(random)}};
                    },
                    {.tls = make_tls_server({.certificate_file = certificate.certificate_file,
                                             .key_file = certificate.key_file})}};
    std::cout << "{\"nginx\": \"" << nginx->url() << "\", \"nghttpd\": \"" << nghttpd->url()
              << "\", \"slow\": \"" << slow.url("") << "\", \"ca\": \"" << certificates.ca_file()
              << "\"}" << std::endl;
    std::cin.get();
    return 0;
} catch (std::exception const& error) {
    std::cerr << "bench_servers: " << error.what() << "\n";
    return 1;
}
