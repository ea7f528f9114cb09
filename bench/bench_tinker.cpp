// A Tinker service with canned answers, for `sampling`: prints its URLs as one line of JSON and
// serves until its input ends. "http1" is in the clear, "http2" is with TLS.
//
//   bench_tinker [protobuf|json [MILLISECONDS]]    results come so, after so long
#include "support/servers/canned_tinker.hpp"
#include "support/sockets/certificates.hpp"

#include <chrono>
#include <iostream>
#include <string>

int main(int argc, char** argv) {
    using namespace tinkxx::test;
    CannedTinkerOptions options;
    options.protobuf = argc < 2 || std::string{argv[1]} != "json";
    if (argc > 2) options.result_delay = std::chrono::milliseconds{std::stoi(argv[2])};
    CannedTinker tinker{options};
    CannedTinker secure_tinker{options};
    Certificates certificates;
    auto const certificate = certificates.issue_for_loopback();
    HttpServer const plain{std::ref(tinker)};
    HttpServer const secure{
        std::ref(secure_tinker),
        {.tls = make_tls_server({.certificate_file = certificate.certificate_file,
                                 .key_file = certificate.key_file})}};
    std::cout << "{\"http1\": \"" << plain.url("") << "\", \"http2\": \"" << secure.url("")
              << "\", \"ca\": \"" << certificates.ca_file() << "\"}" << std::endl;
    std::string line;
    while (std::getline(std::cin, line)) {
    }
    return 0;
}
