"""Every id that the tree cites can be looked up.

    spec_ids.py ROOT               ids of requirements (R-AREA-nn) and decisions (C-nn) that are cited
                                   anywhere are defined in docs/spec, each once and with a title
    spec_ids.py ROOT --self-test   what is planted is found

Citations may be written as ranges and lists: R-CONF-10..13, R-SAMP-31, 34..36. A range may have gaps
inside; both of its ends must be defined.
"""

import importlib.machinery
import importlib.util
import re
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import tree  # noqa: E402


def load_requirements():
    """scripts/requirements, which knows how a page defines an id."""
    path = HERE.parents[1] / "scripts" / "requirements"
    loader = importlib.machinery.SourceFileLoader("requirements", str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("requirements", loader))
    sys.modules["requirements"] = module
    loader.exec_module(module)
    return module


REQUIREMENTS = load_requirements()
PAGES = "docs/spec"
SUFFIXES = tree.TEXT | {".toml", ".yml", ".yaml", ".h"}
# Recordings of others: what looks like an id there is none.
DATA = ("tests/golden/wire/", "tests/golden/models/data/", "tests/golden/homes/")
# The tests of these scripts make up ids: areas that do not exist, decisions from 900 on. Nowhere else
# is that allowed.
MADE_UP = re.compile(r"R-(?:FOO|BAR)-\d+|[C]-9\d{2}")
MADE_UP_IN = "tests/lint/"

CITED = re.compile(r"(?<![\w-])(R-[A-Z]+-|C-)(\d+)(?:\.\.(\d+))?(?![\w-])")
# What may follow an id: more numbers of its area. "R-FUT-61, 45 s" is a time, so something that ends
# a list has to follow the number.
FURTHER = re.compile(r",[ \t]+(\d{2})(?:\.\.(\d{2}))?(?=\s*[,;:.)]|\s*$)", re.MULTILINE)


def citations(text):
    """Pairs of an id and its line; of a range both ends."""
    for match in CITED.finditer(text):
        prefix = match.group(1)
        numbers = [match.group(2), match.group(3)]
        end = match.end()
        while further := FURTHER.match(text, end):
            numbers += further.groups()
            end = further.end()
        line = text.count("\n", 0, match.start()) + 1
        for number in numbers:
            if number:
                yield prefix + number, line


def check(texts):
    """Problems of a tree, given as pairs of a path from its root and a text."""
    texts = list(texts)
    problems, defined = [], {}
    for path, text in texts:
        if not path.startswith(PAGES + "/"):
            continue
        for one, title, line in REQUIREMENTS.items_in(text):
            if one in defined:
                problems.append(f"{path}:{line}: {one} is defined in {defined[one]} already")
            elif not title:
                problems.append(f"{path}:{line}: {one} has no title")
            defined.setdefault(one, f"{path}:{line}")
    if not defined:
        return [f"{PAGES} defines no ids"]
    for path, text in texts:
        if path.startswith(DATA):
            continue
        for one, line in citations(text):
            made_up = path.startswith(MADE_UP_IN) and MADE_UP.fullmatch(one)
            if one not in defined and not made_up:
                problems.append(f"{path}:{line}: cites {one}, which {PAGES} does not define")
    return problems


class SpecIds(unittest.TestCase):
    PAGE = ("docs/spec/page.md", "- **R-FOO-17** *A title\n  of two lines.* Text.\n"
            "- **R-FOO-23** *Another.* Text.\n- **C-901** *Choice.* R-FOO-17.\n")

    def problems(self, text, path="src/a.cpp"):
        return check([self.PAGE, (path, text)])

    def test_sound_tree(self):
        self.assertEqual(self.problems("// R-FOO-17, R-FOO-23, C-901\n"), [])

    def test_unknown_ids(self):
        unknown = "R-FOO-99"
        for text in (f"// {unknown}", f"// R-FOO-17, {unknown}", "// R-FOO-17..99",
                     "// (R-FOO-17, 99)", "// (R-FOO-17, 23..99)", "// R-FOO-17, 23, 99\n", f"`{unknown}`"):
            with self.subTest(text):
                self.assertEqual(self.problems(text),
                                 [f"src/a.cpp:1: cites {unknown}, which docs/spec does not define"])
        self.assertEqual(len(self.problems("\n// C-902: why")), 1)
        self.assertIn("src/a.cpp:2:", self.problems("\n// C-902: why")[0])

    def test_every_folder_counts(self):
        for path in ("tests/a_test.cpp", "docs/retries.md", "docs/spec/other.md", "scripts/requirements-open.txt",
                     "tests/mutations/list.toml", "CONTRIBUTING.md"):
            with self.subTest(path):
                self.assertEqual(len(self.problems("R-FOO-99", path)), 1)

    def test_recordings_do_not(self):
        self.assertEqual(self.problems("C-902", "tests/golden/wire/a.json"), [])

    def test_numbers_that_belong_to_something_else(self):
        for text in ("R-FOO-17, 45 s later", "UTC-5", "RFC-99", "abc-C-902", "C-902x", "VC-99"):
            with self.subTest(text):
                self.assertEqual(self.problems(text), [])

    def test_double_definition(self):
        again = "- **R-FOO-17** *Again.* Text.\n"
        found = self.problems(again, "docs/spec/other.md")
        self.assertEqual(found, ["docs/spec/other.md:1: R-FOO-17 is defined in docs/spec/page.md:1 already"])
        self.assertEqual(len(check([(self.PAGE[0], self.PAGE[1] + again)])), 1)

    def test_definition_outside_of_the_pages_is_a_citation(self):
        self.assertEqual(len(self.problems("- **R-FOO-99** *Title.* Text.\n", "docs/retries.md")), 1)

    def test_missing_title(self):
        self.assertIn("no title", self.problems("- **R-FOO-30** Text.\n", "docs/spec/other.md")[0])

    def test_made_up_ids_are_for_the_tests_of_scripts(self):
        self.assertEqual(self.problems("R-FOO-01", "tests/lint/requirements_test.py"), [])
        self.assertEqual(len(self.problems("R-FOO-01", "tests/unit/a_test.cpp")), 1)

    def test_missing_pages(self):
        self.assertEqual(check([("src/a.cpp", "")]), ["docs/spec defines no ids"])

    def test_files_of_a_folder_are_read(self):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in (self.PAGE, ("src/a.cpp", "// R-FOO-99\n"), ("tests/list.toml", "C-902")):
                (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / path).write_text(text)
            self.assertEqual(len(check(read(Path(folder)))), 2)


def read(root):
    return ((path.as_posix(), text) for path, text in tree.texts(root, SUFFIXES))


def main():
    if "--self-test" in sys.argv:
        return unittest.main(argv=sys.argv[:1])
    problems = check(read(Path(sys.argv[1]).resolve()))
    print("\n".join(problems) if problems else "every id that is cited is defined once")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
