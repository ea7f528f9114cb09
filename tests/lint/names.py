"""Fails on two classes of one name.

    names.py ROOT               check the tree at ROOT
    names.py ROOT --self-test   plant what is wrong; each has to be found

Two classes or enumerations that other files can see have two names, in whatever namespaces they are: in
src and include, and in the headers of programs and tests among themselves and against those. Namespaces of
APART are left out: these speak of the same things in a language of their own. In the whole tree no two
files define the same class of the same namespace: programs that link both would be undefined.

What is local to a .cpp, in a namespace without a name or in a program of one file, may have any name, and
is not looked at; nor are classes within classes, and names of functions.
"""

import re
import sys
import tempfile
from pathlib import Path

TOPS = ["src", "include", "cli", "tests", "bench"]
# Where a .cpp is a part of a library, so that a class in it is seen by others of the same namespace.
SHARED = {"src", "include"}

# Namespaces whose names are their own, and why.
APART = {
    "tinkxx::engine": "knows nothing of the API, and computes with what the API names likewise",
    "tinkxx::wire::server": "requests as the server reads them; in wire they are as the client writes them",
    "tinkxx::wire::result_answer": "the cases of one answer",
    "tinkxx::text": "tokenizers and templates, which know little of the rest",
    "tinkxx::detail": "parts of public headers",
    "tinkxx::simulation::local_world": "each world has users, models and calls of its own",
    "tinkxx::simulation::sampling_world": "as above",
    "tinkxx::simulation::training_world": "as above",
}

SPACE = re.compile(r"^(?:inline )?namespace ([\w:]*) ?\{$")
# One that only declares a name, and has no comment at its end.
SHORT = re.compile(r"^namespace [\w:]+ \{\n.*\n\}$", re.MULTILINE)
CLASS = re.compile(r"^(?:class|struct|union|enum(?: class)?) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?: ?:[^:].*)?(?: \{.*)?$")


def classes(text):
    """The namespace and the name of each class, but for those that are local to a file."""
    spaces, previous = [], ""
    for line in SHORT.sub("", text).splitlines():
        space, found = SPACE.match(line), CLASS.match(line)
        if space:
            spaces.append(space.group(1))
        elif line.startswith("}  // namespace"):
            spaces.pop()
        elif found and (not line.endswith(";") or line.endswith("};")):
            if "" not in spaces and previous != "template <>":
                yield "::".join(spaces), found.group(1)
        previous = line


def apart(space):
    return any(space == name or space.startswith(name + "::") for name in APART)


def check(root):
    whole, short, problems = {}, {}, []
    for top in TOPS:
        for path in sorted((root / top).rglob("*.[ch]pp")):
            name = path.relative_to(root).as_posix()
            if name.startswith("tests/compile_fail/") or name.startswith("tests/consume/"):
                continue  # programs of one file
            for space, one in classes(path.read_text()):
                whole.setdefault((space, one), set()).add(name)
                if (top in SHARED or path.suffix == ".hpp") and not apart(space):
                    short.setdefault(one, {})[space] = name
    for (space, one), paths in sorted(whole.items()):
        if len(paths) > 1:
            problems.append(f"{space}::{one} is defined in {' and in '.join(sorted(paths))}")
    for one, spaces in sorted(short.items()):
        if len(spaces) > 1:
            where = " and ".join(f"{space} ({path})" for space, path in sorted(spaces.items()))
            problems.append(f"{one} is the name of classes of {where}")
    return problems


def self_test():
    text = "namespace a {\nclass B;\nclass B final : public C {\n};\nnamespace {\nstruct D {\n};\n}  // namespace\n" \
           "enum class E : int { x };\ntemplate <class T>\nstruct F {\n};\ntemplate <>\nstruct F<int> {\n};\n" \
           "struct G {};\nstruct G::H {\n};\n}  // namespace a\nnamespace b {\nclass I;\n}\nstruct J\n    : I {\n};\n"
    found = list(classes(text))
    assert found == [("a", "B"), ("a", "E"), ("a", "F"), ("a", "G"), ("", "J")], found
    assert apart("tinkxx::engine::isa") and not apart("tinkxx::engines")

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, space in (("src/one.hpp", "tinkxx::a"), ("tests/two.hpp", "tinkxx::b"), ("tests/three.cpp", "tinkxx::c"),
                            ("src/engine.hpp", "tinkxx::engine"), ("tests/four.cpp", "")):
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(f"namespace {space} {{\nclass Same {{\n}};\n}}  // namespace\n".replace("  {", " {"))
        assert check(root) == ["Same is the name of classes of tinkxx::a (src/one.hpp) and tinkxx::b (tests/two.hpp)"], \
            check(root)


if __name__ == "__main__":
    if "--self-test" in sys.argv:
        self_test()
        sys.exit(0)
    wrong = check(Path(sys.argv[1]).resolve())
    print("\n".join(wrong) if wrong else "names: in order")
    sys.exit(1 if wrong else 0)
