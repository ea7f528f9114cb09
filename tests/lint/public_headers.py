"""Each public header compiles alone, without a warning, brings in no third-party header, and cites no id of
the specification, which users do not have.

    public_headers.py COMPILER VERSION_DIR ROOT               check the headers of the tree at ROOT
    public_headers.py COMPILER VERSION_DIR ROOT --self-test   plant bad headers; each has to be found

What a header may bring in is what the standard library itself brings in: anything else is a
library that our users would have to have. VERSION_DIR holds the generated tinkxx/version.hpp.
"""

import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

CITED = re.compile(r"\b(?:R-[A-Z]+|C)-\d{2}\b")
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wsign-conversion",
            "-Wnon-virtual-dtor", "-Woverloaded-virtual", "-Werror"]


def compile_alone(compiler, text, include_dirs, folder, name):
    """Compiler's messages, and the files that it read."""
    source = Path(folder) / f"{name}.cpp"
    listing = Path(folder) / f"{name}.d"
    source.write_text(text)
    command = [compiler, "-std=c++20", "-fsyntax-only", *WARNINGS,
               *(f"-I{one}" for one in include_dirs), "-MD", "-MF", str(listing), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return done.stderr or f"{compiler} failed", set()
    words = listing.read_text().replace("\\\n", " ").split(":", 1)[1]
    return "", {os.path.realpath(one) for one in re.split(r"(?<!\\)\s+", words.strip())}


def check(compiler, headers, include_dirs):
    """Problems of the headers, each beginning with the header's name."""
    with tempfile.TemporaryDirectory() as folder:
        everything = "#include <bits/stdc++.h>\n"
        message, standard = compile_alone(compiler, everything, [], folder, "standard")
        if message:
            return [message]

        def one(index_and_header):
            index, header = index_and_header
            # Twice: a header also has to bear being included again.
            text = f"#include <{header}>\n#include <{header}>\n"
            message, read = compile_alone(compiler, text, include_dirs, folder, f"header{index}")
            if message:
                return [f"{header} does not compile alone:\n{message}"]
            found = next(Path(one) / header for one in include_dirs if (Path(one) / header).is_file())
            if cited := CITED.search(found.read_text(encoding="utf-8")):
                return [f"{header} cites {cited.group()}"]
            ours = tuple(f"{os.path.realpath(one)}/tinkxx/" for one in include_dirs)
            source = os.path.realpath(f"{folder}/header{index}.cpp")
            strange = sorted(file for file in read - standard - {source} if not file.startswith(ours))
            return [f"{header} brings in {file}" for file in strange]

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return [problem for problems in pool.map(one, enumerate(headers)) for problem in problems]


# Joins tinkxx to another library, whose types it has to name; it belongs to a target of its own.
FOREIGN_BY_DESIGN = {"tinkxx/torch.hpp"}


def public_headers(root):
    include = Path(root) / "include"
    headers = {str(path.relative_to(include)) for path in include.rglob("*.hpp")}
    return sorted(headers - FOREIGN_BY_DESIGN)


PLANTED = {
    "third_party.hpp": ("#pragma once\n#include <zlib.h>\n", "brings in"),
    "hidden.hpp": ("#pragma once\n#include <tinkxx/third_party.hpp>\n", "brings in"),
    "incomplete.hpp": ("#pragma once\ninline std::string word() { return {}; }\n", "not compile alone"),
    "unguarded.hpp": ("struct Once {};\n", "not compile alone"),
    "warns.hpp": ("#pragma once\ninline int narrow(long x) { return x; }\n", "not compile alone"),
    "cites.hpp": ("#pragma once\n// As R-CONF-50 wants.\n", "cites"),
    "good.hpp": ("#pragma once\n#include <string>\n#include <thread>\n", ""),
}


def self_test(compiler):
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "tinkxx").mkdir()
        for name, (text, _) in PLANTED.items():
            (Path(folder) / "tinkxx" / name).write_text(text)
        found = check(compiler, [f"tinkxx/{name}" for name in PLANTED], [folder])
        for name, (_, expected) in PLANTED.items():
            problems = [one for one in found if one.startswith(f"tinkxx/{name} ")]
            if bool(problems) != bool(expected) or not all(expected in one for one in problems):
                failures.append(f"{name}: expected '{expected}', got {problems}")
    return failures


def main():
    compiler, version_dir, root = sys.argv[1:4]
    if "--self-test" in sys.argv:
        problems, summary = self_test(compiler), f"{len(PLANTED)} planted headers"
    else:
        headers = public_headers(root) + ["tinkxx/version.hpp"]
        problems = check(compiler, headers, [f"{root}/include", version_dir])
        summary = f"{len(headers)} public headers"
    print("\n".join(problems) if problems else f"{summary}: in order")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
