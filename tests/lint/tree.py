"""Small promises about the tree as a whole.

    tree.py ROOT VERSION changelog   the newest entry of CHANGELOG.md is the project's version
    tree.py ROOT VERSION readme      the README shows two of the examples, to the letter
    tree.py ROOT VERSION unfinished  no marks of unfinished work
    tree.py ROOT VERSION paths       no path of somebody's own machine
    tree.py ROOT VERSION links       relative links in the Markdown files lead somewhere
    tree.py ROOT VERSION format      sources are as clang-format 16 would write them
    tree.py ROOT VERSION self-test   the above find what is planted
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = {".cpp", ".hpp"}
TEXT = SOURCE | {".md", ".py", ".cmake", ".txt", ".json", ".in", ".sh", ".proto", ""}
# Spelt so that this file does not find itself.
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX"]) + r")\b")
OWN_PATH = re.compile(r"(?<![\w.~$}/-])/(?:" + "|".join(["wo" + "rk", "ho" + "me", "ro" + "ot", "Us" + "ers"]) + r")/\w")


def files(root):
    """What Git would commit; everything outside build folders where there is no Git."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    known = (root / ".git").exists() and shutil.which("git")
    done = subprocess.run(command, capture_output=True, check=False) if known else None
    if done and done.returncode == 0:
        paths = [root / name for name in done.stdout.decode().split("\0") if name]
    else:
        paths = [path for path in root.rglob("*") if not {".git", "build"} & set(path.relative_to(root).parts)]
    return sorted(path for path in paths if path.is_file() and not path.is_symlink())


def texts(root, suffixes):
    for path in files(root):
        if path.suffix in suffixes and "corpus" not in path.parts and "finds" not in path.parts:
            try:
                yield path.relative_to(root), path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def grep(root, pattern, what):
    return [f"{path}:{number}: {what}: {line.strip()}"
            for path, text in texts(root, TEXT)
            for number, line in enumerate(text.splitlines(), 1) if pattern.search(line)]


def changelog(root, version):
    match = re.search(r"^## \[?(\d+\.\d+\.\d+)", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    newest = match.group(1) if match else "nothing"
    return [] if newest == version else [f"CHANGELOG.md begins with {newest}, the project is {version}"]


def readme(root, _version):
    text = (root / "README.md").read_text()
    blocks = re.findall(r"^```cpp\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    shown = [next((root / "examples").glob(name)) for name in ("04_*.cpp", "01_*.cpp")]
    return [f"README.md does not show {path.relative_to(root)}" for path in shown if path.read_text() not in blocks]


def unfinished(root, _version):
    return grep(root, UNFINISHED, "unfinished")


def paths(root, _version):
    return grep(root, OWN_PATH, "path of one machine")


def links(root, _version):
    wrong = []
    for path, text in texts(root, {".md"}):
        # Not in code, where a lambda looks like a link.
        prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
            if "://" not in target and not (root / path.parent / target).exists():
                wrong.append(f"{path}: link to {target}, which is not there")
    return wrong


def format_(root, _version):
    wrong = []
    for path, _ in texts(root, SOURCE):
        done = subprocess.run(["clang-format-16", "--dry-run", "--Werror", str(root / path)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            wrong.append(f"{path}: run clang-format-16 -i on it")
    return wrong


CHECKS = {"changelog": changelog, "readme": readme, "unfinished": unfinished, "paths": paths,
          "links": links, "format": format_}


def self_test(root, version):
    mark = "TO" + "DO"
    own = "/ho" + "me/somebody/x"
    planted = [
        ("changelog", "CHANGELOG.md", lambda text: re.sub(r"## \[?\d+", "## 99", text, count=1)),
        ("readme", "README.md", lambda text: text.replace("int main", "int  main", 1)),
        ("readme", sorted((root / "examples").glob("01_*.cpp"))[0].relative_to(root), lambda text: text + "\n"),
        ("unfinished", "src/CMakeLists.txt", lambda text: text + f"# {mark}: later\n"),
        ("paths", "README.md", lambda text: text + f"\n    cd {own}\n"),
        ("links", "README.md", lambda text: text + "\n[no](docs/no.md)\n"),
    ]
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        for path in files(root):
            target = copy / path.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        for check, name, change in planted:
            before = (copy / name).read_text()
            sound = len(CHECKS[check](copy, version))
            (copy / name).write_text(change(before))
            if len(CHECKS[check](copy, version)) <= sound:
                failures.append(f"{check} does not see the change in {name}")
            (copy / name).write_text(before)
    return failures


def main():
    root, version, check = Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
    problems = self_test(root, version) if check == "self-test" else CHECKS[check](root, version)
    print("\n".join(problems) if problems else f"{check}: in order")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
