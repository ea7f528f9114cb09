// What our renderers make of conversations: JSON lines in, JSON lines out. Driven by compare.py.
//
//     tinkxx-render-driver TOKENIZER < requests > answers
#include "oracle/renderers/answers.hpp"
#include "support/small_tokenizer.hpp"

#include <fstream>
#include <iostream>
#include <string>

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: tinkxx-render-driver TOKENIZER < requests > answers\n";
        return 2;
    }
    std::ifstream file{argv[1]};
    tinkxx::test::RendererAnswers answers{tinkxx::test::SmallTokenizer::read(file)};
    for (std::string line; std::getline(std::cin, line);) std::cout << answers.answer(line) << '\n';
}
