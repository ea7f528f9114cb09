#pragma once

#include <tinkxx/text/tokenizer.hpp>

#include <fstream>
#include <iterator>
#include <string>

namespace tinkxx::text {

inline std::string read_golden(std::string const& name) {
    std::ifstream file{TINKXX_SOURCE_DIR "/tests/golden/text/" + name, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
}

inline TextTokenizer golden_tokenizer(std::string const& name) {
    return TextTokenizer::from_file(TINKXX_SOURCE_DIR "/tests/golden/text/" + name +
                                    "/tokenizer.json");
}

}  // namespace tinkxx::text
