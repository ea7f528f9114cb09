#!/usr/bin/env python3
"""Makes the reference from the public headers; fails if Doxygen has anything to complain about.

    doxygen.py SOURCE_DIR OUTPUT_DIR [--self-test]

Ends with status 77, which ctest shows as skipped, if there is no Doxygen.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile


def complaints(source, output, changes=""):
    """What Doxygen says about the tree, made with its Doxyfile and further settings."""
    output.mkdir(parents=True, exist_ok=True)
    settings = (source / "Doxyfile").read_text() + f"\nOUTPUT_DIRECTORY = \"{output}\"\n" + changes
    made = subprocess.run(["doxygen", "-"], input=settings, cwd=source, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    text = made.stdout.strip()
    if not text and made.returncode != 0:
        text = f"doxygen ended with status {made.returncode}"
    if not text and not (output / "html" / "index.html").exists():
        text = "doxygen wrote no html/index.html"
    return text


def self_test(source):
    cases = {
        "good": ("/// Adds one.\nint good(int x);\n", False),
        "command": ("/// Adds \\nosuchcommand.\nint bad(int x);\n", True),
        "parameter": ("/// Adds one.\n/// @param y what\nint bad(int x);\n", True),
        "reference": ("/// See @ref nowhere.\nint bad(int x);\n", True),
    }
    wrong = []
    for name, (text, expected) in cases.items():
        with tempfile.TemporaryDirectory() as folder:
            header = pathlib.Path(folder) / "header.hpp"
            header.write_text("#pragma once\n/// @file\n\n" + text)
            found = complaints(source, pathlib.Path(folder) / "out",
                               f"INPUT = \"{header}\"\nUSE_MDFILE_AS_MAINPAGE =\n")
            if bool(found) != expected:
                wrong.append(f"{name}: {found or 'no complaint'}")
    return "\n".join(wrong)


def main():
    source, output = (pathlib.Path(each).resolve() for each in sys.argv[1:3])
    if shutil.which("doxygen") is None:
        print("doxygen is not installed, so the reference is not checked: "
              "scripts/install-packages tests")
        return 77
    found = self_test(source) if "--self-test" in sys.argv else complaints(source, output)
    if found:
        print(found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
