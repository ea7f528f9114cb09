// Stands in for libFuzzer where the compiler has none: runs the target once on every file given.
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        std::ifstream file{argv[i], std::ios::binary};
        if (!file) {
            std::cerr << "cannot read " << argv[i] << '\n';
            return 1;
        }
        std::string const input{std::istreambuf_iterator<char>{file}, {}};
        LLVMFuzzerTestOneInput(reinterpret_cast<std::uint8_t const*>(input.data()), input.size());
    }
    std::cout << argc - 1 << " inputs replayed\n";
}
