// Uses enough of the library that every dependency of it has to be linked, and nothing that needs
// a network.
#include <tinkxx/error.hpp>
#include <tinkxx/net_transport.hpp>
#include <tinkxx/runtime.hpp>
#include <tinkxx/version.hpp>

#include <cstring>
#include <iostream>

int main(int argc, char** argv) {
    tinkxx::Runtime const runtime;
    auto const transport = tinkxx::net_transport(runtime);
    std::cout << "tinkxx " << TINKXX_VERSION << '\n';

    bool refused = false;
    try {
        (void)tinkxx::net_transport(runtime, {.tls = {.ca_file = "no such file"}});
    } catch (tinkxx::ValidationError const& error) {
        refused = true;  // also shows that exceptions cross the library's border
    }
    bool const expected_version = argc < 2 || std::strcmp(argv[1], TINKXX_VERSION) == 0;
    return transport && refused && expected_version ? 0 : 1;
}
