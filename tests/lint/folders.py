"""Fails on a folder of sources that docs/architecture.md does not describe, and on one that is too full.

    folders.py ROOT               check the tree at ROOT
    folders.py ROOT --self-test   plant what is wrong; each has to be found

A folder has a row in a table of that page: its path in backticks in the column "Folder", as from the root
or from src/, or as from X in a table whose head says "Folder of `X`". The row of a folder may also name
the folders below it, in backticks. Folders below tests/unit are named for those of src; others have to be
named by the page.

A folder is too full with more than MOST sources. Each file counts, a header and its .cpp as two; what is in
folders below does not count.
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path

PAGE = "docs/architecture.md"
TOPS = ["src", "include", "cli", "tests", "bench", "examples", "models"]
SOURCES = {".cpp", ".hpp", ".py"}
MIRROR = "tests/unit/"

# Sources in a folder, and those that have more for a reason.
MOST = 16
FULLER = {
    "include/tinkxx": "users name what they include, and there is no folder in between",
}

CODE = re.compile(r"`([^`]+)`")


def rows(text):
    """The folders that have a row, each with the words in backticks of its row."""
    found, before, prefix, column = {}, "", "src", None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if cells and not before.startswith("|"):  # the head of a table
            column = next((i for i, cell in enumerate(cells) if cell.startswith("Folder")), None)
            named = CODE.findall(cells[column]) if column is not None else []
            prefix = named[0] if named else "src"
        elif cells and column is not None:
            words = set(CODE.findall(line))
            if cells[column] == "the folder itself":
                found.setdefault(prefix, set()).update(words)
            for name in CODE.findall(cells[column]):
                for path in (name, f"src/{name}", f"{prefix}/{name}"):
                    found.setdefault(path, set()).update(words)
        before = line
    return found


def folders(root):
    """The folders that hold sources, and how many."""
    count = {}
    for top in TOPS:
        for path in (root / top).rglob("*"):
            if path.suffix in SOURCES and path.is_file() and "__pycache__" not in path.parts:
                folder = path.parent.relative_to(root).as_posix()
                count[folder] = count.get(folder, 0) + 1
    return count


def described(folder, table, root):
    if folder in table:
        return True
    if folder.startswith(MIRROR):
        return (root / "src" / folder.removeprefix(MIRROR)).is_dir() or f"`{folder}`" in (root / PAGE).read_text()
    above, _, name = folder.rpartition("/")
    return bool({name, f"{name}/", folder} & table.get(above, set()))


def check(root):
    table, problems = rows((root / PAGE).read_text()), []
    for folder, count in sorted(folders(root).items()):
        if folder not in TOPS and not described(folder, table, root):
            problems.append(f"{folder} has no row in {PAGE} that says what belongs there")
        if count > MOST and folder not in FULLER:
            problems.append(f"{folder} has {count} sources, which is more than {MOST}: give them rooms, or "
                            "say in folders.py why not")
    return problems


def self_test(root):
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for top in TOPS + ["docs"]:
            shutil.copytree(root / top, copy / top, ignore=shutil.ignore_patterns("corpus", "wire", "data", "*.safetensors"))
        sound = check(copy)
        for name, files in (("src/net/planted", 1), ("src/planted", 1), ("cli/planted", 1), ("tests/planted", 1),
                            ("tests/unit/net/planted", 1), ("src/net/address", MOST + 1)):
            made = [copy / name / f"planted_{i}.cpp" for i in range(files)]
            made[0].parent.mkdir(exist_ok=True)
            for path in made:
                path.write_text("")
            found = [one for one in check(copy) if one not in sound]
            if len(found) != 1 or not found[0].startswith(name):
                failures.append(f"not found: {files} files in {name}; got {found}")
            for path in made:
                path.unlink()
            if name.endswith("planted"):
                made[0].parent.rmdir()
        page = (copy / PAGE).read_text()
        (copy / PAGE).write_text(page.replace("| `net/tls` |", "| net |"))
        if not any(one.startswith("src/net/tls ") for one in check(copy)):
            failures.append("not found: the row of src/net/tls is missing")
    return failures


if __name__ == "__main__":
    where = Path(sys.argv[1]).resolve()
    wrong = self_test(where) if "--self-test" in sys.argv else check(where)
    print("\n".join(wrong) if wrong else "folders: in order")
    sys.exit(1 if wrong else 0)
