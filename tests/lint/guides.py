"""Compiles the programs of the guides, so that they stay what a user can write.

    guides.py COMPILER INCLUDE ROOT               every ```cpp block of README.md and docs/*.md
    guides.py COMPILER INCLUDE ROOT --self-test   a wrong name in any of them has to be noticed

INCLUDE holds the headers that the build makes. A block may use the names that guides are free to
take for granted (NAMES below), and may leave something out with a line of `…`.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Speaks of what is inside, which has no public header.
SKIPPED = {"docs/engine.md", "docs/architecture.md"}

# What every block may use without saying where it comes from.
NAMES = """
struct Names {
    tinkxx::ServiceClient& service;
    tinkxx::SamplingClient& sampler;
    tinkxx::TrainingClient& trainer;
    tinkxx::HttpClient& http;
    tinkxx::RestClient& rest;
    tinkxx::AdminClient& admin;
    std::shared_ptr<tinkxx::testing::ManualClock> clock;
    std::shared_ptr<tinkxx::testing::FakeTransport> fake;
    tinkxx::TrainingClient& reference;
    tinkxx::ModelInput prompt;
    std::vector<tinkxx::ModelInput> prompts;
    tinkxx::SamplingParams params;
    std::vector<tinkxx::Token> tokens;
    std::vector<tinkxx::Token> completion;
    std::vector<float> weights;
    std::vector<tinkxx::Datum> data;
    std::vector<tinkxx::Datum> all;
    std::vector<std::vector<tinkxx::Datum>> batches;
    std::vector<tinkxx::TensorData> logprobs;
    tinkxx::data::LearningRateSchedule schedule;
    std::int64_t step;
    int steps;
    static double reward(std::vector<tinkxx::Token> const&);
    static std::shared_ptr<tinkxx::Tokenizer const> load_tokenizer(std::string const&,
                                                                   std::optional<std::string> const&);
    template <class... T>
    static void use(T const&...);
};
"""
PRELUDE = """
#include <tinkxx/testing/fake_tinker.hpp>
#include <tinkxx/testing/fake_transport.hpp>
#include <tinkxx/testing/faulty_transport.hpp>
#include <tinkxx/testing/manual_clock.hpp>
#include <tinkxx/tinkxx.hpp>
#include <gtest/gtest.h>
#include <iostream>
#include <span>
#include <vector>
using namespace std::chrono_literals;
namespace kit = tinkxx::testing;
"""
BLOCK = re.compile(r"^```cpp\n(.*?)^```", re.MULTILINE | re.DOTALL)
# The first line of a function, as opposed to a statement.
FUNCTION = re.compile(r"^(?!for\b|if\b|while\b|switch\b|return\b|else\b)(?:TEST\(|[\w:<>,*& ]+ \w+\([^;=]*$)")


def blocks(root):
    """Pairs of place and text."""
    for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        name = str(path.relative_to(root))
        if name in SKIPPED:
            continue
        text = path.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            yield f"{name}:{text.count(chr(10), 0, match.start()) + 2}", match.group(1)


def program(number, place, text):
    """The block as a namespace: its functions, and its statements as the body of one."""
    file, line = place.rsplit(":", 1)
    outside, inside, to_outside = [], [], False
    for offset, one in enumerate(text.split("\n")):
        if one.strip() == "…" or one.startswith(("#include", "namespace kit")):
            continue
        if FUNCTION.match(one):
            to_outside = True
        numbered = f'#line {int(line) + offset} "{file}"\n{one}'
        (outside if to_outside or one.startswith("using namespace") else inside).append(numbered)
        if one.startswith("}"):
            to_outside = False
    body = "\n".join(inside)
    return (f"namespace guide_{number} {{\n" + "\n".join(outside) +
            f"\nstruct Guide : Names {{\n    void run() {{\n{body}\n    }}\n}};\n}}\n")


def problems(compiler, include, root, texts):
    includes = sorted({line for _, text in texts for line in text.split("\n") if line.startswith("#include")})
    source = PRELUDE + "\n".join(includes) + NAMES
    source += "".join(program(number, place, text) for number, (place, text) in enumerate(texts))
    all_errors = ["-ferror-limit=0"] if "clang" in Path(compiler).name else []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "guides.cpp"
        file.write_text(source, encoding="utf-8")
        result = subprocess.run(
            [compiler, "-std=c++20", "-fsyntax-only", "-w", *all_errors, f"-I{root / 'include'}", f"-I{include}", str(file)],
            capture_output=True, text=True)
    return result.stderr if result.returncode != 0 else ""


def main():
    compiler, include, root = sys.argv[1], sys.argv[2], Path(sys.argv[3]).resolve()
    texts = [(place, text) for place, text in blocks(root) if "int main(" not in text]
    if sys.argv[4:] == ["--self-test"]:
        wrong = [(place, text + "no_such_name();\n") for place, text in texts]
        found = problems(compiler, include, root, wrong)
        missed = [place for place, _ in texts if place.rsplit(":", 1)[0] not in found]
        if missed or not found:
            sys.exit("guides: not noticed in " + ", ".join(missed))
        print(f"guides: a wrong name is noticed in each of {len(texts)} programs")
        return
    found = problems(compiler, include, root, texts)
    if found:
        sys.exit(found + "guides: a program of a guide does not compile; a name that guides may take for "
                         "granted goes into tests/lint/guides.py")
    print(f"guides: {len(texts)} programs compile")


if __name__ == "__main__":
    main()
