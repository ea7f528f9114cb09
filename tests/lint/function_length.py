"""Fails on a function of more than 60 lines.

    function_length.py ROOT               check the tree at ROOT
    function_length.py ROOT --self-test   a long function has to be found, and a short one not

Tests are not looked at: a table of cases is long and clear. Relies on clang-format: a function ends with a brace that is indented like its first line.
"""

import re
import sys
from pathlib import Path

MOST = 60
FOLDERS = ["src", "include", "cli", "bench", "examples"]
# Functions that may be longer, each with the reason.
LONGER = {
    "add_serve": "a flat list of the options of a command",
}

# A line that opens a block which is not a function, or only looks as if it did.
OTHER = re.compile(r"\s*//|\s*(namespace|class|struct|enum|union|extern|if|for|while|switch|else|do|try|case|return|auto|\})\b"
                   r"|\s*(constexpr auto|auto const)\b|\s*\}")
# What ends before a function begins.
BEFORE = re.compile(r"(;|\{|\}|:)\s*$|^\s*(//|#|$)")


def functions(lines):
    """The first line, the number of lines and the text of each function."""
    last = -1
    for number, line in enumerate(lines):
        # What stands inside of a function is part of it.
        if number <= last or not line.rstrip().endswith("{") or OTHER.match(line):
            continue
        first = number
        while first > 0 and not BEFORE.search(lines[first - 1]):
            first -= 1
        if OTHER.match(lines[first]) or "(" not in "".join(lines[first:number + 1]):
            continue
        indent = re.match(r" *", lines[first]).group()
        ends = (i for i in range(number + 1, len(lines)) if lines[i].startswith(indent + "}"))
        last = next(ends, number)
        yield first + 1, last - first + 1, lines[first].strip()


def check(root):
    problems = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.[ch]pp")):
            for first, count, text in functions(path.read_text().splitlines()):
                name = re.search(r"([\w~]+)\(", text)
                if count > MOST and not (name and name.group(1) in LONGER):
                    problems.append(f"{path.relative_to(root)}:{first}: {count} lines: {text}")
    return problems


def self_test():
    body = "    step();\n" * MOST
    long = "namespace a {\n\nvoid Part::serve(Ask& ask,\n                 int more) {\n" + body + "}\n\n}\n"
    found = list(functions(long.splitlines()))
    assert found == [(3, MOST + 3, "void Part::serve(Ask& ask,")], found
    short = "class A {\n    int b() {\n        return 1;\n    }\n};\n"
    assert [count for _, count, _ in functions(short.splitlines())] == [3]


if __name__ == "__main__":
    if "--self-test" in sys.argv:
        self_test()
        sys.exit(0)
    found = check(Path(sys.argv[1]))
    print("\n".join(found))
    sys.exit(1 if found else 0)
