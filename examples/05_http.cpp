// Asks a server two things at once and prints the answers: ./05_http http://localhost:8000
#include <tinkxx/tinkxx.hpp>

#include <iostream>

int main(int argc, char** argv) try {
    tinkxx::HttpClient http{{.base_url = argc > 1 ? argv[1] : "http://localhost:8000"}};
    auto health = http.send({.path = "/api/v1/healthz"});  // both are on their way
    auto models = http.send({.path = "/api/v1/get_server_capabilities"});
    std::cout << health.get().body << '\n' << models.get().body << '\n';
} catch (tinkxx::Error const& e) {
    std::cerr << e.what() << " [request " << e.request_id() << "]\n";
    return e.retryable() ? 75 : 1;  // 75 is EX_TEMPFAIL: worth trying again
}
